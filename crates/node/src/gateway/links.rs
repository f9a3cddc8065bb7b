//! Links, addresses and routes, through the kernel's own protocol (rtnetlink).
//!
//! The gateway has a bridge with its address. A pod has `eth0`, one end of a virtual cable whose other end is at the
//! bridge. Pods' packets that are not for another pod come in there: those for Services are taken for this machine's
//! own because of a route to the whole network of Services (`AnyIP`), and all others because of a routing table that
//! is asked for packets from the bridge alone. Nothing is ever forwarded.

use super::GatewayError;
use crate::protocol::NodeConfig;
use futures::StreamExt as _;
use rtnetlink::packet_route::link::{InfoData, InfoVeth, LinkAttribute, LinkMessage};
use rtnetlink::packet_route::route::{RouteScope, RouteType};
use rtnetlink::packet_route::rule::RuleAction;
use rtnetlink::{Error, Handle, LinkBridge, LinkUnspec, LinkVeth, RouteMessageBuilder};
use std::io;
use std::net::{IpAddr, Ipv4Addr};

const BRIDGE: &str = "pods";
const POD_LINK: &str = "eth0";
const LOOPBACK: &str = "lo";
/// Bits of the pods' network.
pub(super) const POD_NETWORK_BITS: u8 = 24;
/// The kernel's table of addresses that are this machine's.
const LOCAL_TABLE: u32 = 255;
/// The table of what comes in over the bridge.
const BRIDGE_TABLE: u32 = 100;
/// The least bits of a network, which say that all addresses are meant.
const ANY: (Ipv4Addr, u8) = (Ipv4Addr::UNSPECIFIED, 0);

/// The links of a network namespace. Its connection ends with it.
#[derive(Debug)]
pub(super) struct NetworkLinks {
    handle: Handle,
}

impl NetworkLinks {
    /// Opens the namespace that the calling thread is in.
    pub(super) fn open() -> io::Result<Self> {
        let (connection, handle, _) = rtnetlink::new_connection()?;
        tokio::spawn(connection);
        Ok(Self { handle })
    }

    /// Makes the gateway's side.
    pub(super) async fn make_gateway(&self, config: &NodeConfig) -> Result<(), GatewayError> {
        let loopback = self.bring_up(LOOPBACK).await?;
        self.remove_link(BRIDGE).await?;
        let bridge = LinkBridge::new(BRIDGE).address(hardware_address(config.gateway)).up().build();
        let made = self.handle.link().add(bridge).execute().await;
        made.map_err(say("make the bridge of the pods' network"))?;
        let bridge = self.find_link(BRIDGE).await?.ok_or_else(no_link(BRIDGE))?;
        self.add_address(bridge, config.gateway).await?;
        let mut networks = vec![config.services];
        networks.extend([(*config.api.ip(), 32), (config.dns, 32)]);
        for network in networks {
            self.add_local_route(network, LOCAL_TABLE, loopback).await?;
        }
        self.add_local_route(ANY, BRIDGE_TABLE, loopback).await?;
        self.add_pod_route(bridge, config.gateway).await?;
        let rule = self.handle.rule().add().v4().input_interface(BRIDGE).table_id(BRIDGE_TABLE);
        let added = rule.action(RuleAction::ToTable).replace().execute().await;
        added.or_else(unless_there).map_err(say("add the rule for what pods send"))
    }

    /// Makes the cable between the bridge and the network namespace of a process, which is to have an address.
    pub(super) async fn make_pod_link(
        &self,
        name: &str,
        address: Ipv4Addr,
        process: u32,
    ) -> Result<(), GatewayError> {
        self.remove_link(name).await?;
        let bridge = self.find_link(BRIDGE).await?.ok_or_else(no_link(BRIDGE))?;
        let far = LinkUnspec::new_with_name(POD_LINK).setns_by_pid(process);
        let far = far.address(hardware_address(address)).build();
        let near = LinkVeth::new(name, POD_LINK).set_info_data(InfoData::Veth(InfoVeth::Peer(far)));
        let made = self.handle.link().add(near.controller(bridge).up().build()).execute().await;
        made.map_err(say("connect a pod to the bridge"))
    }

    /// Removes a link; one that is not there is removed.
    pub(super) async fn remove_link(&self, name: &str) -> Result<(), GatewayError> {
        let Some(index) = self.find_link(name).await? else { return Ok(()) };
        match self.handle.link().del(index).execute().await {
            Err(error) if !is_missing(&error) => Err(say("remove a link")(error)),
            _ => Ok(()),
        }
    }

    /// Makes the pod's side, in its namespace.
    async fn make_pod(&self, address: Ipv4Addr, gateway: Ipv4Addr) -> Result<(), GatewayError> {
        self.bring_up(LOOPBACK).await?;
        let link = self.find_link(POD_LINK).await?.ok_or_else(no_link(POD_LINK))?;
        self.add_address(link, address).await?;
        self.bring_up(POD_LINK).await?;
        let route = RouteMessageBuilder::<Ipv4Addr>::new().gateway(gateway).build();
        let added = self.handle.route().add(route).execute().await;
        added.map_err(say("add the pod's route to the gateway"))
    }

    async fn bring_up(&self, name: &'static str) -> Result<u32, GatewayError> {
        let index = self.find_link(name).await?.ok_or_else(no_link(name))?;
        let change = LinkUnspec::new_with_index(index).up().build();
        let changed = self.handle.link().set(change).execute().await;
        changed.map_err(say("bring a link up"))?;
        Ok(index)
    }

    async fn find_link(&self, name: &str) -> Result<Option<u32>, GatewayError> {
        let is_named = |link: &LinkMessage| {
            link.attributes
                .iter()
                .any(|said| matches!(said, LinkAttribute::IfName(own) if own == name))
        };
        let mut links = std::pin::pin!(self.handle.link().get().execute());
        while let Some(link) = links.next().await {
            let link = link.map_err(say("list links"))?;
            if is_named(&link) {
                return Ok(Some(link.header.index));
            }
        }
        Ok(None)
    }

    async fn add_address(&self, link: u32, address: Ipv4Addr) -> Result<(), GatewayError> {
        let request = self.handle.address().add(link, IpAddr::V4(address), POD_NETWORK_BITS);
        request.execute().await.map_err(say("give a link its address"))
    }

    /// Has pods' addresses not taken for this machine's own, which would answer for them when pods ask for each other.
    async fn add_pod_route(&self, bridge: u32, gateway: Ipv4Addr) -> Result<(), GatewayError> {
        let network = Ipv4Addr::from_bits(gateway.to_bits() & !0xff);
        let route =
            RouteMessageBuilder::<Ipv4Addr>::new().destination_prefix(network, POD_NETWORK_BITS);
        let route = route.scope(RouteScope::Link).table_id(BRIDGE_TABLE).output_interface(bridge);
        let added = self.handle.route().add(route.build()).replace().execute().await;
        added.map_err(say("add the route between pods"))
    }

    /// Has addresses taken for this machine's own.
    async fn add_local_route(
        &self,
        network: (Ipv4Addr, u8),
        table: u32,
        loopback: u32,
    ) -> Result<(), GatewayError> {
        let (address, bits) = network;
        let mut route = RouteMessageBuilder::<Ipv4Addr>::new();
        if bits > 0 {
            route = route.destination_prefix(address, bits);
        }
        let route = route.kind(RouteType::Local).scope(RouteScope::Host).table_id(table);
        let route = route.output_interface(loopback).build();
        let added = self.handle.route().add(route).replace().execute().await;
        added.map_err(say("add the route of a network that is served here"))
    }
}

/// In a pod's network namespace, after [`super::Gateway::attach_pod`]: its address, loopback and the route to the
/// gateway. Blocks, and starts no thread; not for use inside of a tokio runtime.
pub fn configure_pod_network(address: Ipv4Addr, gateway: Ipv4Addr) -> Result<(), GatewayError> {
    let fail = |source| GatewayError::new("open the pod's network".to_owned(), source);
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_io().build().map_err(fail)?;
    runtime.block_on(async { NetworkLinks::open().map_err(fail)?.make_pod(address, gateway).await })
}

/// The hardware address that goes with an address, always the same: a bridge would take another with each pod that is
/// attached otherwise, and a pod could not be reached for a while that has the address of an earlier one, because
/// neighbours keep what they know.
fn hardware_address(address: Ipv4Addr) -> Vec<u8> {
    [&[0x0a, 0x58], &address.octets()[..]].concat()
}

fn to_io(error: Error) -> io::Error {
    match error {
        Error::NetlinkError(message) => message.to_io(),
        other => io::Error::other(other.to_string()),
    }
}

fn say(what: &'static str) -> impl Fn(Error) -> GatewayError {
    move |error| GatewayError::new(what.to_owned(), to_io(error))
}

fn no_link(name: &'static str) -> impl Fn() -> GatewayError {
    move || GatewayError::new(format!("find the link {name}"), io::ErrorKind::NotFound.into())
}

fn is_missing(error: &Error) -> bool {
    to_io(error.clone()).raw_os_error() == Some(nix::errno::Errno::ENODEV as i32)
}

fn unless_there(error: Error) -> Result<(), Error> {
    match to_io(error.clone()).kind() {
        io::ErrorKind::AlreadyExists => Ok(()),
        _ => Err(error),
    }
}
