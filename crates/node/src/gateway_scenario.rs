//! Parts of the network on their own, for its tests: each in namespaces that the test has made.

use bytes::Bytes;
use h2::RecvStream;
use h2::server::SendResponse;
use http::{HeaderMap, HeaderValue, Request, Response};
use node::gateway::{Gateway, HostDoor, HostDoorOptions, configure_pod_network};
use node::protocol::{Egress, NodeConfig, PodSandbox, ProbeTarget, ServiceEntry};
use serde::Deserialize;
use serde_json::{Value, json};
use std::error::Error;
use std::io::Write as _;
use std::process::ExitCode;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::runtime::Builder;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

type ScenarioFailure = Box<dyn Error>;

/// What a gateway is told to do, a line each.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
enum ScenarioStep {
    Attach(PodSandbox, i32),
    Detach(String),
    Services(Vec<ServiceEntry>),
    Probe(ProbeTarget, u64),
}

/// `__gateway CONFIG`, `__host-door STATE API EGRESS NAMESERVER`, `__pod-network ADDRESS GATEWAY` and
/// `__health-server ADDRESS`.
pub(crate) fn run_scenario_verb(mut words: impl Iterator<Item = String>) -> Option<ExitCode> {
    let verb = words.nth(1)?;
    let words: Vec<String> = words.collect();
    let run = match (verb.as_str(), words.as_slice()) {
        ("__gateway", [config]) => block_on(run_gateway(config)),
        ("__host-door", [state, api, egress, nameserver]) => {
            block_on(run_host_door(state, api, egress, nameserver))
        }
        ("__health-server", [address]) => block_on(run_health_server(address)),
        ("__pod-network", [address, gateway]) => open_pod_network(address, gateway),
        _ => return None,
    };
    Some(match run {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say(&json!({ "error": error.to_string() }));
            ExitCode::FAILURE
        }
    })
}

fn block_on(run: impl Future<Output = Result<(), ScenarioFailure>>) -> Result<(), ScenarioFailure> {
    Builder::new_current_thread().enable_all().build()?.block_on(run)
}

fn open_pod_network(address: &str, gateway: &str) -> Result<(), ScenarioFailure> {
    Ok(configure_pod_network(address.parse()?, gateway.parse()?)?)
}

async fn run_gateway(config: &str) -> Result<(), ScenarioFailure> {
    let config: NodeConfig = serde_json::from_str(config)?;
    let gateway = Gateway::start(&config).await?;
    say(&json!("ready"));
    let mut lines = read_lines();
    while let Some(line) = lines.recv().await {
        let done = match serde_json::from_str(&line)? {
            ScenarioStep::Attach(pod, process) => {
                tell_result(gateway.attach_pod(&pod, process).await)
            }
            ScenarioStep::Detach(pod) => tell_result(gateway.detach_pod(&pod).await),
            ScenarioStep::Services(services) => json!(gateway.set_services(services).await),
            ScenarioStep::Probe(target, patience) => {
                json!(gateway.probe(&target, Duration::from_millis(patience)).await)
            }
        };
        say(&done);
    }
    Ok(())
}

async fn run_host_door(
    state: &str,
    api: &str,
    egress: &str,
    nameserver: &str,
) -> Result<(), ScenarioFailure> {
    let egress: Egress = serde_json::from_value(json!(egress))?;
    let own = vec![([10, 244, 0, 0].into(), 24), ([10, 96, 0, 0].into(), 12)];
    let options =
        HostDoorOptions { api: api.parse()?, egress, nameservers: vec![nameserver.parse()?], own };
    let _door = HostDoor::open(state.as_ref(), options)?;
    say(&json!("ready"));
    let mut lines = read_lines();
    while lines.recv().await.is_some() {}
    Ok(())
}

/// Serves gRPC's health check: the service `closed` is not served, and `none` is one that servers do not implement.
async fn run_health_server(address: &str) -> Result<(), ScenarioFailure> {
    let listener = TcpListener::bind(address).await?;
    say(&json!("ready"));
    loop {
        let (stream, _) = listener.accept().await?;
        let mut connection = h2::server::handshake(stream).await?;
        while let Some(call) = connection.accept().await {
            let (request, respond) = call?;
            // The connection is driven by asking it for the next call.
            tokio::spawn(async move { answer_health(request, respond).await.map_err(drop) });
        }
    }
}

async fn answer_health(
    request: Request<RecvStream>,
    mut respond: SendResponse<Bytes>,
) -> Result<(), h2::Error> {
    let is_check = request.uri().path() == "/grpc.health.v1.Health/Check";
    let mut body = request.into_body();
    let mut message = Vec::new();
    while let Some(data) = body.data().await {
        message.extend_from_slice(&data?);
    }
    let mut answer = respond.send_response(Response::new(()), false)?;
    let is_known = is_check && !message.ends_with(b"none");
    if is_known {
        let status = if message.ends_with(b"closed") { 2 } else { 1 };
        answer.send_data(Bytes::from(vec![0, 0, 0, 0, 2, 8, status]), false)?;
    }
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", HeaderValue::from_static(if is_known { "0" } else { "12" }));
    trailers.insert("grpc-message", HeaderValue::from_static("as it was asked for"));
    answer.send_trailers(trailers)
}

fn tell_result(result: Result<(), impl Error + 'static>) -> Value {
    match result {
        Ok(()) => Value::Null,
        Err(error) => json!({ "error": error.to_string() }),
    }
}

/// Lines of the standard input, until its end.
fn read_lines() -> UnboundedReceiver<String> {
    let (sender, receiver) = unbounded_channel();
    std::thread::spawn(move || {
        for line in std::io::stdin().lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                break;
            }
        }
    });
    receiver
}

fn say(value: &Value) {
    let mut output = std::io::stdout().lock();
    // Without its test, the scenario is at its end.
    let _ = writeln!(output, "{value}");
    let _ = output.flush();
}
