//! When a container is asked how it is, and what follows from the answers.

use crate::protocol::ProbeTarget;
use k8s_openapi::api::core::v1::{Container, Probe};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::Duration;

/// What a probe is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ProbeKind {
    /// Whether the program has come up; the others wait for it.
    Startup,
    /// Whether it is to be started again.
    Liveness,
    /// Whether Services lead to it.
    Readiness,
}

impl ProbeKind {
    /// As messages begin.
    pub fn title(self) -> &'static str {
        match self {
            Self::Startup => "Startup",
            Self::Liveness => "Liveness",
            Self::Readiness => "Readiness",
        }
    }

    /// What a container says of this kind.
    pub fn of_container(self, container: &Container) -> Option<&Probe> {
        match self {
            Self::Startup => container.startup_probe.as_ref(),
            Self::Liveness => container.liveness_probe.as_ref(),
            Self::Readiness => container.readiness_probe.as_ref(),
        }
    }
}

/// When a probe is made, and how many answers count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProbeSchedule {
    /// From the start of the container.
    pub initial_delay: Duration,
    /// Between two.
    pub period: Duration,
    /// For one.
    pub timeout: Duration,
    successes: u32,
    failures: u32,
}

impl ProbeSchedule {
    /// The schedule of a probe, with Kubernetes' defaults.
    pub fn of_probe(probe: &Probe) -> Self {
        let or = |said: Option<i32>, usual: u32| {
            said.and_then(|it| u32::try_from(it).ok()).filter(|it| *it > 0).unwrap_or(usual)
        };
        let seconds = |said, usual| Duration::from_secs(u64::from(or(said, usual)));
        Self {
            initial_delay: seconds(probe.initial_delay_seconds, 0),
            period: seconds(probe.period_seconds, 10),
            timeout: seconds(probe.timeout_seconds, 1),
            successes: or(probe.success_threshold, 1),
            failures: or(probe.failure_threshold, 3),
        }
    }
}

/// Answers of one probe, counted.
#[derive(Clone, Copy, Debug, Default)]
pub struct ProbeTally {
    last: Option<bool>,
    run: u32,
}

impl ProbeTally {
    /// Takes in an answer; says what the probe comes to, once enough answers in a row agree.
    pub fn count_answer(&mut self, is_success: bool, schedule: &ProbeSchedule) -> Option<bool> {
        self.run = if self.last == Some(is_success) { self.run.saturating_add(1) } else { 1 };
        self.last = Some(is_success);
        let needed = if is_success { schedule.successes } else { schedule.failures };
        (self.run >= needed).then_some(is_success)
    }
}

/// What is done for one probe.
#[derive(Clone, Debug)]
pub enum ProbeAction {
    /// A connection from the network.
    Network(ProbeTarget),
    /// A program in the container.
    Program(Vec<String>),
}

/// What a probe does in a pod with this address; the error is why it cannot be.
pub fn plan_probe(
    probe: &Probe,
    container: &Container,
    pod: Ipv4Addr,
) -> Result<ProbeAction, String> {
    if let Some(exec) = &probe.exec {
        return Ok(ProbeAction::Program(exec.command.clone().unwrap_or_default()));
    }
    if let Some(get) = &probe.http_get {
        let address = probe_address(get.host.as_deref(), &get.port, container, pod)?;
        return Ok(ProbeAction::Network(http_target(get, address)));
    }
    if let Some(socket) = &probe.tcp_socket {
        let address = probe_address(socket.host.as_deref(), &socket.port, container, pod)?;
        return Ok(ProbeAction::Network(ProbeTarget::Tcp { address }));
    }
    if let Some(grpc) = &probe.grpc {
        let address = probe_address(None, &IntOrString::Int(grpc.port), container, pod)?;
        let service = grpc.service.clone().unwrap_or_default();
        return Ok(ProbeAction::Network(ProbeTarget::Grpc { address, service }));
    }
    Err("missing probe handler".to_owned())
}

fn http_target(
    get: &k8s_openapi::api::core::v1::HTTPGetAction,
    address: SocketAddrV4,
) -> ProbeTarget {
    let path = get.path.clone().unwrap_or_default();
    let said = get.http_headers.iter().flatten();
    let mut headers: Vec<_> = said.map(|one| (one.name.clone(), one.value.clone())).collect();
    let has = |headers: &[(String, String)], name: &str| {
        headers.iter().any(|(one, _)| one.eq_ignore_ascii_case(name))
    };
    for (name, value) in
        [("Host", address.to_string()), ("User-Agent", "kube-probe/1.36".to_owned())]
    {
        if !has(&headers, name) {
            headers.push((name.to_owned(), value));
        }
    }
    ProbeTarget::Http {
        address,
        tls: get.scheme.as_deref() == Some("HTTPS"),
        path: if path.starts_with('/') { path } else { format!("/{path}") },
        headers,
    }
}

/// Pods are asked at their own address, even if a probe names another host: that one is refused.
fn probe_address(
    host: Option<&str>,
    port: &IntOrString,
    container: &Container,
    pod: Ipv4Addr,
) -> Result<SocketAddrV4, String> {
    let host = host.filter(|host| !host.is_empty());
    if let Some(host) = host.filter(|host| **host != pod.to_string()) {
        return Err(format!("probes of another host ({host}) are not made here"));
    }
    let number = match port {
        IntOrString::Int(number) => Some(*number),
        IntOrString::String(name) => {
            let mut ports = container.ports.iter().flatten();
            let named = ports.find(|one| one.name.as_ref() == Some(name));
            named.map(|one| one.container_port).or_else(|| name.parse().ok())
        }
    };
    let number = number.and_then(|number| u16::try_from(number).ok()).filter(|it| *it > 0);
    let number = number.ok_or_else(|| format!("couldn't find port {port:?} of the probe"))?;
    Ok(SocketAddrV4::new(pod, number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_count_once_enough_in_a_row_agree() {
        let probe = Probe { success_threshold: Some(2), ..Probe::default() };
        let schedule = ProbeSchedule::of_probe(&probe);
        let mut tally = ProbeTally::default();
        let answers = [true, true, false, false, true, false, false, false, false];
        let told = answers.map(|answer| tally.count_answer(answer, &schedule));
        let expected = [None, Some(true), None, None, None, None, None, Some(false), Some(false)];
        assert_eq!(told, expected);
    }

    #[test]
    fn a_probe_that_says_little_is_made_as_kubernetes_does() {
        let schedule = ProbeSchedule::of_probe(&Probe::default());
        let seconds = [schedule.initial_delay, schedule.period, schedule.timeout];
        assert_eq!(seconds.map(|it| it.as_secs()), [0, 10, 1]);
    }

    #[test]
    fn a_port_is_found_by_its_name_and_other_hosts_are_refused() {
        let container: Container = serde_json::from_value(serde_json::json!({
            "name": "c", "ports": [{"name": "web", "containerPort": 8080}],
        }))
        .unwrap();
        let pod = Ipv4Addr::new(10, 244, 0, 9);
        let probe = |value| serde_json::from_value::<Probe>(value).unwrap();
        let get = probe(serde_json::json!({"httpGet": {"port": "web", "path": "healthz"}}));
        let action = plan_probe(&get, &container, pod).unwrap();
        let ProbeAction::Network(ProbeTarget::Http { address, path, headers, tls }) = action else {
            panic!("{action:?}");
        };
        assert_eq!(
            (address.to_string().as_str(), path.as_str(), tls),
            ("10.244.0.9:8080", "/healthz", false)
        );
        assert_eq!(headers[0], ("Host".to_owned(), "10.244.0.9:8080".to_owned()));
        let elsewhere = probe(serde_json::json!({"tcpSocket": {"port": 1, "host": "example.org"}}));
        assert!(plan_probe(&elsewhere, &container, pod).is_err());
        let unknown = probe(serde_json::json!({"tcpSocket": {"port": "no"}}));
        assert!(plan_probe(&unknown, &container, pod).is_err());
    }
}
