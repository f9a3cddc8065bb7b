//! Clusters behind a proxy, by the variables that kubectl reads, and with its answers.

use crate::support::{Ran, Scratch, apron, command, command_at, patiently, peer_path};
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex};

/// A name that nothing but the proxy knows.
const CLUSTER: &str = "cluster.example.test";

/// A proxy that leads every tunnel to one address and keeps what it was asked for.
struct Tunnels {
    address: String,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Tunnels {
    fn to(target: String) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let asked = Arc::<Mutex<Vec<String>>>::default();
        let kept = Arc::clone(&asked);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (kept, target) = (Arc::clone(&kept), target.clone());
                std::thread::spawn(move || tunnel(stream, &target, &kept));
            }
        });
        Self { address, asked }
    }

    /// What was asked for since the last look.
    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.asked.lock().unwrap())
    }
}

fn tunnel(client: TcpStream, target: &str, asked: &Mutex<Vec<String>>) {
    let mut lines = BufReader::new(client.try_clone().unwrap()).lines();
    let Some(Ok(first)) = lines.next() else { return };
    asked.lock().unwrap().push(first);
    while lines.next().is_some_and(|line| line.is_ok_and(|line| !line.is_empty())) {}
    let Ok(server) = TcpStream::connect(target) else { return };
    let mut answer = client.try_clone().unwrap();
    answer.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").unwrap();
    let ways = [(client.try_clone().unwrap(), server.try_clone().unwrap()), (server, client)];
    for (mut from, mut to) in ways {
        std::thread::spawn(move || {
            let _ = std::io::copy(&mut from, &mut to);
            let _ = to.shutdown(std::net::Shutdown::Write);
        });
    }
}

/// A server, and a kubeconfig that calls it by a name that does not exist.
struct Behind {
    server: Child,
    address: String,
    kubeconfig: PathBuf,
}

impl Drop for Behind {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

impl Behind {
    fn start(scratch: &Scratch) -> Self {
        let words = ["apiserver", "--listen", "127.0.0.1:0", "--data-dir", "data"];
        let mut server = command(scratch);
        let server = server.args(words).stdout(Stdio::null()).spawn().unwrap();
        let text = patiently(|| {
            let path = scratch.join("data/kubeconfig");
            fs_err::read_to_string(path).map_err(|error| error.to_string())
        });
        let crds = scratch.write("crds.yaml", apron(scratch, ["crds"]).ok().stdout);
        let mut kubectl = command_at(scratch, &peer_path("kubectl"));
        kubectl.args(["apply", "--server-side", "--kubeconfig", "data/kubeconfig", "-f"]).arg(crds);
        patiently(|| {
            let ran = Ran::from(kubectl.output().unwrap());
            if ran.code == Some(0) { Ok(()) } else { Err(ran.all()) }
        });
        let (_, rest) = text.split_once("https://").expect("an address");
        let address = rest.split(|one: char| one.is_whitespace() || one == '"').next();
        let address = address.expect("an address").to_owned();
        let named = format!("{CLUSTER}:6443\n    tls-server-name: localhost");
        let kubeconfig = scratch.write("elsewhere", text.replacen(&address, &named, 1));
        Self { server, address, kubeconfig }
    }

    /// The same words said by apron and by kubectl.
    fn say(&self, scratch: &Scratch, program: Option<&Path>, environment: &[(&str, &str)]) -> Ran {
        let mut said =
            program.map_or_else(|| command(scratch), |kubectl| command_at(scratch, kubectl));
        let words: &[&str] =
            if program.is_some() { &["get", "--raw", "/version"] } else { &["list"] };
        said.args(words);
        said.arg("--kubeconfig").arg(&self.kubeconfig).envs(environment.iter().copied());
        said.output().unwrap().into()
    }
}

/// H1 of the package manager: where kubectl gets through, apron does.
#[test]
fn clusters_are_reached_through_the_proxies_that_kubectl_uses() {
    let scratch = Scratch::new();
    let behind = Behind::start(&scratch);
    let tunnels = Tunnels::to(behind.address.clone());
    let kubectl = peer_path("kubectl");
    let proxy = format!("http://{}", tunnels.address);
    let dead = "http://127.0.0.1:1";
    let through = [format!("CONNECT {CLUSTER}:6443 HTTP/1.1")];
    let table: [(&[(&str, &str)], bool); 6] = [
        (&[("HTTPS_PROXY", &proxy)], true),
        (&[("https_proxy", &proxy), ("NO_PROXY", "10.0.0.0/8,example.org")], true),
        (&[("HTTP_PROXY", &proxy)], false),
        (&[("HTTPS_PROXY", &proxy), ("NO_PROXY", ".example.test")], false),
        (&[("HTTPS_PROXY", &proxy), ("NO_PROXY", "*")], false),
        (&[("HTTPS_PROXY", dead)], false),
    ];
    for (environment, reached) in table {
        for program in [None, Some(kubectl.as_path())] {
            let ran = behind.say(&scratch, program, environment);
            let told = format!("{environment:?} {program:?}: {}", ran.all());
            assert_eq!(ran.code == Some(0), reached, "{told}");
            let asked = tunnels.take();
            assert_eq!(asked.first() == through.first(), reached, "{told}: {asked:?}");
        }
    }
    // Go knows no ALL_PROXY; curl and docker do.
    assert_eq!(behind.say(&scratch, None, &[("ALL_PROXY", &proxy)]).code, Some(0));
    assert_eq!(tunnels.take().first(), through.first());
}

/// A proxy in the kubeconfig is for that cluster, whatever the environment says.
#[test]
fn a_kubeconfig_may_name_the_proxy_of_its_cluster() {
    let scratch = Scratch::new();
    let mut behind = Behind::start(&scratch);
    let tunnels = Tunnels::to(behind.address.clone());
    let text = fs_err::read_to_string(&behind.kubeconfig).unwrap();
    let with_proxy =
        format!("tls-server-name: localhost\n    proxy-url: http://{}", tunnels.address);
    behind.kubeconfig =
        scratch.write("proxied", text.replacen("tls-server-name: localhost", &with_proxy, 1));
    let kubectl = peer_path("kubectl");
    for program in [None, Some(kubectl.as_path())] {
        let ran = behind.say(&scratch, program, &[("NO_PROXY", "*")]);
        assert_eq!(ran.code, Some(0), "{program:?}: {}", ran.all());
        assert!(!tunnels.take().is_empty(), "{program:?}");
    }
}

#[test]
fn a_proxy_that_is_no_address_is_named() {
    let scratch = Scratch::new();
    let behind = Behind::start(&scratch);
    let said = behind.say(&scratch, None, &[("ALL_PROXY", "http://pro xy")]).failed();
    assert!(said.contains("error: the proxy's address cannot be read"), "{said}");
    assert!(said.contains("hint: check HTTPS_PROXY"), "{said}");
}
