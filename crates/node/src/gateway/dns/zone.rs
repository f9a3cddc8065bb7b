//! What the names of a cluster lead to (the Kubernetes DNS specification, version 1.1.0).

use super::message::{DnsAnswer, DnsQuery, DnsRecord, KIND_A, KIND_ANY, KIND_SRV, ResponseCode};
use crate::protocol::ServiceEntry;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, SocketAddrV4};

/// Addresses of one headless Service that are told; a resolver could not take many more.
const ADDRESSES_TOLD_MAX: usize = 1000;

/// All names below the cluster's domain.
#[derive(Clone, Debug)]
pub struct ClusterZone {
    domain: Vec<String>,
    services: BTreeMap<(String, String), ZoneService>,
    namespaces: BTreeSet<String>,
}

#[derive(Clone, Debug)]
struct ZoneService {
    address: Option<Ipv4Addr>,
    /// Name and number.
    ports: Vec<(String, u16)>,
    pods: Vec<Ipv4Addr>,
    /// Pods with names of their own.
    hosts: Vec<(String, Ipv4Addr)>,
}

impl ClusterZone {
    /// The zone of a domain, in which the API server is known before anything else.
    pub fn new(domain: &str, api: SocketAddrV4, entries: &[ServiceEntry]) -> Self {
        let labels = domain.split('.').filter(|label| !label.is_empty());
        let domain = labels.map(str::to_ascii_lowercase).collect();
        let mut zone = Self { domain, services: BTreeMap::new(), namespaces: BTreeSet::new() };
        let ports = vec![("https".to_owned(), api.port())];
        let (pods, hosts) = (Vec::new(), Vec::new());
        let server = ZoneService { address: Some(*api.ip()), ports, pods, hosts };
        zone.insert_service("default", "kubernetes", server);
        for entry in entries {
            let named =
                |port: &crate::protocol::ServicePortEntry| Some((port.name.clone()?, port.port));
            let service = ZoneService {
                address: entry.address,
                ports: entry.ports.iter().filter_map(named).collect(),
                pods: entry.pods.iter().copied().take(ADDRESSES_TOLD_MAX).collect(),
                hosts: entry.hosts.clone(),
            };
            zone.insert_service(&entry.namespace, &entry.name, service);
        }
        zone
    }

    fn insert_service(&mut self, namespace: &str, name: &str, service: ZoneService) {
        self.namespaces.insert(namespace.to_owned());
        let key = (namespace.to_owned(), name.to_owned());
        self.services.entry(key).or_insert(service);
    }

    /// The answer to a query about the cluster; nothing if it is about a name outside.
    pub fn answer_query(&self, query: &DnsQuery) -> Option<DnsAnswer> {
        let rest = query.labels.len().checked_sub(self.domain.len())?;
        let (below, domain) = query.labels.split_at_checked(rest)?;
        if domain != self.domain {
            return None;
        }
        let below: Vec<&str> = below.iter().map(String::as_str).collect();
        let found = self.find_records(&below);
        let code = if found.is_some() { ResponseCode::NoError } else { ResponseCode::NoSuchName };
        let is_asked_for = |record: &DnsRecord| {
            let kind = match record {
                DnsRecord::Address(_) => KIND_A,
                DnsRecord::Port(..) => KIND_SRV,
            };
            query.kind == kind || query.kind == KIND_ANY
        };
        let mut records = found.unwrap_or_default();
        records.retain(is_asked_for);
        Some(DnsAnswer { code, records, zone: self.domain.clone() })
    }

    /// What there is at a name below the domain; nothing if there is no such name.
    fn find_records(&self, below: &[&str]) -> Option<Vec<DnsRecord>> {
        match below {
            [] | ["svc"] => Some(Vec::new()),
            [namespace, "svc"] => self.namespaces.contains(*namespace).then(Vec::new),
            [name, namespace, "svc"] => Some(self.find_service(namespace, name)?.addresses()),
            ["_tcp", name, namespace, "svc"] => {
                self.find_service(namespace, name).map(|_| Vec::new())
            }
            [host, name, namespace, "svc"] => {
                let service = self.find_service(namespace, name)?;
                if service.address.is_some() {
                    return None;
                }
                let by_name = service.hosts.iter().filter(|(name, _)| name == host);
                let named: Vec<_> = by_name.map(|(_, pod)| DnsRecord::Address(*pod)).collect();
                if !named.is_empty() {
                    return Some(named);
                }
                let pod = service.pods.iter().find(|pod| dash_address(**pod) == *host)?;
                Some(vec![DnsRecord::Address(*pod)])
            }
            [port, "_tcp", name, namespace, "svc"] => {
                let port = port.strip_prefix('_')?;
                self.find_port(namespace, name, port)
            }
            _ => None,
        }
    }

    fn find_service(&self, namespace: &str, name: &str) -> Option<&ZoneService> {
        self.services.get(&(namespace.to_owned(), name.to_owned()))
    }

    fn find_port(&self, namespace: &str, name: &str, port: &str) -> Option<Vec<DnsRecord>> {
        let service = self.find_service(namespace, name)?;
        let (_, number) = service.ports.iter().find(|(name, _)| name == port)?;
        let mut place = vec![name.to_owned(), namespace.to_owned(), "svc".to_owned()];
        place.extend(self.domain.iter().cloned());
        if service.address.is_some() {
            return Some(vec![DnsRecord::Port(*number, place)]);
        }
        let at_pod = |pod: &Ipv4Addr| {
            let mut host = vec![dash_address(*pod)];
            host.extend(place.iter().cloned());
            DnsRecord::Port(*number, host)
        };
        Some(service.pods.iter().map(at_pod).collect())
    }
}

impl ZoneService {
    fn addresses(&self) -> Vec<DnsRecord> {
        match self.address {
            Some(address) => vec![DnsRecord::Address(address)],
            None => self.pods.iter().copied().map(DnsRecord::Address).collect(),
        }
    }
}

/// An address as a label (`10-244-0-5`).
fn dash_address(address: Ipv4Addr) -> String {
    address.to_string().replace('.', "-")
}
