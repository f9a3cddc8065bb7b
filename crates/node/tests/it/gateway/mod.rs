//! The network of pods with real namespaces and real clients, as root and as an unprivileged user.

mod stage;

use node::gateway::connect_pod;
use serde_json::{Value, json};
use stage::{
    NetworkStage, NodeUser, PRIVATE, PUBLIC, await_condition, fits_socket_address, mode_of,
    node_users, service,
};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

/// Listens on all addresses; reads until the client has nothing more to say, then answers with its name and the
/// number of bytes. `name address port`.
const COUNTING_SERVER: &str = "
import socket, sys, threading
name, address, port = sys.argv[1], sys.argv[2], int(sys.argv[3])
server = socket.socket()
server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
server.bind((address, port)); server.listen(1000)
print('ready')
def serve(client):
    count = 0
    while True:
        data = client.recv(65536)
        if not data: break
        count += len(data)
    client.sendall(f'{name} {count}'.encode()); client.close()
while True:
    client, _ = server.accept()
    threading.Thread(target=serve, args=(client,), daemon=True).start()
";

/// Sends so many bytes, ends its direction, and prints what it is answered, or the error's name.
/// `address port bytes`.
const COUNTING_CLIENT: &str = "
import socket, sys, errno
address, port, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
client = socket.socket(); client.settimeout(60)
try:
    client.connect((address, port))
    client.sendall(b'x' * count)
    client.shutdown(socket.SHUT_WR)
    answer = b''
    while True:
        data = client.recv(65536)
        if not data: break
        answer += data
    print(answer.decode())
except OSError as error:
    name = errno.errorcode.get(error.errno, repr(error))
    # Which of them it is depends on how far the client has come.
    print('RESET' if name in ('ECONNRESET', 'EPIPE', 'ENOTCONN') else name)
";

/// Holds a connection open: says a line each time it is told one, with what the server echoed.
const HOLDING_CLIENT: &str = "
import socket, sys
client = socket.create_connection((sys.argv[1], int(sys.argv[2])), 60)
print('ready')
for line in sys.stdin:
    try:
        client.sendall(line.encode())
        answer = client.recv(1000)
        print(answer.decode().strip() or 'end')
    except OSError as error:
        print(type(error).__name__)
";

/// Answers each line with itself.
const ECHO_SERVER: &str = "
import socketserver, sys
class Echo(socketserver.StreamRequestHandler):
    def handle(self):
        try:
            for line in self.rfile: self.wfile.write(line)
        except ConnectionError: pass
socketserver.ThreadingTCPServer.allow_reuse_address = True
socketserver.ThreadingTCPServer.daemon_threads = True
server = socketserver.ThreadingTCPServer(('', int(sys.argv[1])), Echo)
print('ready')
server.serve_forever()
";

/// Knows one address for every name, over UDP; for names that begin with `big`, that they are to be asked for over TCP.
const NAME_SERVER: &str = "
import socket, threading
def answer(query):
    end = query.index(0, 12) + 5
    return query[:2] + b'\\x81\\x80\\0\\1\\0\\1\\0\\0\\0\\0' + query[12:end] + b'\\xc0\\x0c\\0\\1\\0\\1\\0\\0\\0\\x3c\\0\\4' + bytes([93, 184, 216, 34])
def serve_tcp(server):
    while True:
        client, _ = server.accept()
        with client:
            head = client.recv(2, socket.MSG_WAITALL)
            reply = answer(client.recv(int.from_bytes(head, 'big'), socket.MSG_WAITALL))
            client.sendall(len(reply).to_bytes(2, 'big') + reply)
tcp = socket.socket(); tcp.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
tcp.bind(('', 53)); tcp.listen()
threading.Thread(target=serve_tcp, args=(tcp,), daemon=True).start()
udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); udp.bind(('', 53))
print('ready')
while True:
    query, client = udp.recvfrom(4096)
    reply = answer(query)
    if query[13:16] == b'big':
        reply = reply[:2] + b'\\x83' + reply[3:6] + b'\\0\\0' + reply[8:-16]
    udp.sendto(reply, client)
";

/// Answers with the status that is the path, if the request is a probe; over TLS, too, with a certificate of its own.
const WEB_SERVER: &str = "
import http.server, ssl, subprocess, tempfile, threading
class Web(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        code = int(self.path.split('/')[1].split('?')[0])
        if self.headers['User-Agent'] != 'kube-probe/1.36' or self.headers['Host'] != '10.244.0.5:8080': code = 400
        self.send_response(code); self.end_headers(); self.wfile.write(b'ok')
    def log_message(self, *_): pass
class SecureWeb(Web):
    def do_GET(self):
        self.send_response(200 if self.headers['Host'] == '10.244.0.5:8443' else 400); self.end_headers()
with tempfile.TemporaryDirectory() as directory:
    key, certificate = directory + '/key', directory + '/certificate'
    subprocess.run(['openssl', 'req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes',
        '-keyout', key, '-out', certificate, '-subj', '/CN=nobody', '-days', '1'], check=True, stderr=subprocess.DEVNULL)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER); context.load_cert_chain(certificate, key)
secure = http.server.ThreadingHTTPServer(('', 8443), SecureWeb)
secure.socket = context.wrap_socket(secure.socket, server_side=True)
threading.Thread(target=secure.serve_forever, daemon=True).start()
server = http.server.ThreadingHTTPServer(('', 8080), Web)
print('ready'); server.serve_forever()
";

/// Opens 200 connections before it uses one, and counts what they are answered.
const MANY_CLIENTS: &str = "
import socket, sys, collections
clients = []
for _ in range(200):
    client = socket.create_connection(('10.96.1.5', 80), 60); client.settimeout(60)
    clients.append(client)
for client in clients: client.sendall(b'y' * 10000)
answers = collections.Counter()
for client in clients:
    client.shutdown(socket.SHUT_WR)
    answers[b''.join(iter(lambda: client.recv(1000), b'')).decode()] += 1
print(sorted(answers.items()))
";

fn set_services(stage: &mut NetworkStage, services: &[Value]) -> Value {
    stage.order(&json!({ "services": services }))
}

#[test]
fn a_pod_that_listens_on_a_services_port_itself_reaches_the_pod_behind_the_service() {
    for user in node_users() {
        let mut stage = NetworkStage::open(user, "none");
        let one = stage.add_pod("10.244.0.5");
        let two = stage.add_pod("10.244.0.6");
        let _one = stage.start_python(&one, COUNTING_SERVER, &["one", "", "9443"]);
        let _two = stage.start_python(&two, COUNTING_SERVER, &["two", "", "9443"]);
        let services = [service("two", "10.96.1.5", 9443, &["10.244.0.6:9443"])];
        assert_eq!(set_services(&mut stage, &services), json!([]));
        for count in ["0", "1", "3000000"] {
            let answer = stage.run_python(&one, COUNTING_CLIENT, &["10.96.1.5", "9443", count]);
            assert_eq!(answer, format!("two {count}"), "one direction ends before the other");
        }
        let answer = stage.run_python(&two, COUNTING_CLIENT, &["10.96.1.5", "9443", "7"]);
        assert_eq!(answer, "two 7", "a pod reaches itself");
        let answer = stage.run_python(&two, COUNTING_CLIENT, &["10.244.0.5", "9443", "7"]);
        assert_eq!(answer, "one 7", "pods reach each other");
        let answer = stage.run_python(&one, COUNTING_CLIENT, &["10.96.1.5", "9444", "7"]);
        assert_eq!(answer, "ECONNREFUSED", "a port that the Service does not have");
    }
}

#[test]
fn two_hundred_connections_at_once_are_spliced_and_shared_by_the_pods() {
    for user in node_users() {
        let mut stage = NetworkStage::open(user, "none");
        let client = stage.add_pod("10.244.0.5");
        let pods = [stage.add_pod("10.244.0.6"), stage.add_pod("10.244.0.7")];
        let _one = stage.start_python(&pods[0], COUNTING_SERVER, &["one", "", "8080"]);
        let _two = stage.start_python(&pods[1], COUNTING_SERVER, &["two", "", "8080"]);
        let mut web = service("web", "10.96.1.5", 80, &["10.244.0.6:8080", "10.244.0.7:8080"]);
        set_services(&mut stage, std::slice::from_ref(&web));
        let answers = stage.run_python(&client, MANY_CLIENTS, &[]);
        assert_eq!(answers, "[('one 10000', 100), ('two 10000', 100)]");
        web["isSticky"] = json!(true);
        set_services(&mut stage, &[web]);
        let answers = stage.run_python(&client, MANY_CLIENTS, &[]);
        assert_eq!(answers, "[('two 10000', 200)]", "each client has one pod");
    }
}

#[test]
fn what_is_connected_outlives_a_change_of_services_and_ends_with_its_pod() {
    for user in node_users() {
        let mut stage = NetworkStage::open(user, "none");
        let client = stage.add_pod("10.244.0.5");
        let pods = [stage.add_pod("10.244.0.6"), stage.add_pod("10.244.0.7")];
        let _one = stage.start_python(&pods[0], ECHO_SERVER, &["8080"]);
        let _two = stage.start_python(&pods[1], COUNTING_SERVER, &["two", "", "8080"]);
        set_services(&mut stage, &[service("web", "10.96.1.5", 81, &["10.244.0.6:8080"])]);
        let mut held = stage.start_python(&client, HOLDING_CLIENT, &["10.96.1.5", "81"]);
        held.say("before");
        assert_eq!(held.next_line(), "before");
        let mut direct = stage.start_python(&client, HOLDING_CLIENT, &["10.244.0.6", "8080"]);
        direct.say("direct");
        assert_eq!(direct.next_line(), "direct");

        set_services(&mut stage, &[service("web", "10.96.1.5", 81, &["10.244.0.7:8080"])]);
        assert_eq!(stage.run_python(&client, COUNTING_CLIENT, &["10.96.1.5", "81", "1"]), "two 1");
        set_services(&mut stage, &[service("web", "10.96.1.5", 81, &[])]);
        assert_eq!(
            stage.run_python(&client, COUNTING_CLIENT, &["10.96.1.5", "81", "1"]),
            "ECONNREFUSED"
        );
        set_services(&mut stage, &[]);
        assert_eq!(
            stage.run_python(&client, COUNTING_CLIENT, &["10.96.1.5", "80", "1"]),
            "RESET",
            "the way out"
        );
        held.say("after");
        assert_eq!(held.next_line(), "after");

        assert_eq!(stage.order(&json!({ "detach": "10.244.0.6" })), Value::Null);
        held.say("gone");
        assert!(
            ["end", "ConnectionResetError", "BrokenPipeError"].contains(&held.next_line().as_str())
        );
        assert_eq!(stage.order(&json!({ "detach": "10.244.0.6" })), Value::Null, "it is detached");
        // Neighbours know the hardware address of the earlier pod still.
        let again = stage.add_pod("10.244.0.6");
        let _three = stage.start_python(&again, COUNTING_SERVER, &["three", "", "8080"]);
        assert_eq!(
            stage.run_python(&client, COUNTING_CLIENT, &["10.244.0.6", "8080", "1"]),
            "three 1"
        );
    }
}

#[test]
fn a_reset_on_one_side_is_one_on_the_other() {
    const SERVER: &str = "
import socket, struct, sys
server = socket.socket(); server.bind(('', 8080)); server.listen(); print('ready')
client, _ = server.accept()
client.sendall(b'hello')
if sys.argv[1] == 'resets':
    assert client.recv(5) == b'reset'
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0)); client.close()
else:
    try: print(client.recv(10) or 'end')
    except OSError as error: print(type(error).__name__)
";
    const CLIENT: &str = "
import socket, struct, sys
client = socket.create_connection(('10.96.1.5', 81), 60)
try:
    assert client.recv(5) == b'hello'
    if sys.argv[1] == 'resets':
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0)); client.close()
    else:
        client.sendall(b'reset')
        print(client.recv(10) or 'end')
except OSError as error: print(type(error).__name__)
";
    let mut stage = NetworkStage::open(node_users()[0], "none");
    let pods = [stage.add_pod("10.244.0.5"), stage.add_pod("10.244.0.6")];
    set_services(&mut stage, &[service("web", "10.96.1.5", 81, &["10.244.0.6:8080"])]);
    let server = stage.start_python(&pods[1], SERVER, &["waits"]);
    stage.run_python(&pods[0], CLIENT, &["resets"]);
    assert_eq!(server.next_line(), "ConnectionResetError");
    drop(server);
    let _server = stage.start_python(&pods[1], SERVER, &["resets"]);
    assert_eq!(stage.run_python(&pods[0], CLIENT, &["waits"]), "ConnectionResetError");
}

#[test]
fn a_pod_that_does_not_listen_yet_is_tried_for_a_moment_and_then_given_up() {
    let user = node_users()[0];
    let mut stage = NetworkStage::open(user, "none");
    let client = stage.add_pod("10.244.0.5");
    let _pod = stage.add_pod("10.244.0.6");
    set_services(&mut stage, &[service("web", "10.96.1.5", 80, &["10.244.0.6:8080"])]);
    let start = std::time::Instant::now();
    assert_eq!(stage.run_python(&client, COUNTING_CLIENT, &["10.96.1.5", "80", "1"]), "RESET");
    assert!(start.elapsed().as_secs() >= 2, "the pod was tried for two seconds");
    let other = stage.add_pod("10.244.0.7");
    let _server = stage.start_python(&other, COUNTING_SERVER, &["other", "", "8080"]);
    set_services(
        &mut stage,
        &[service("web", "10.96.1.5", 80, &["10.244.0.6:8080", "10.244.0.7:8080"])],
    );
    let neighbours = stage.run_python(&client, "print(open('/proc/net/arp').read())", &[]);
    assert!(
        neighbours.contains("0a:58:0a:f4:00:01"),
        "the gateway's, whoever is attached: {neighbours}"
    );
    for _ in 0..4 {
        assert_eq!(
            stage.run_python(&client, COUNTING_CLIENT, &["10.96.1.5", "80", "1"]),
            "other 1"
        );
    }
}

#[test]
fn entries_that_cannot_be_served_are_told_and_bounded() {
    let mut stage = NetworkStage::open(node_users()[0], "none");
    let services = [
        service("one", "10.96.1.5", 80, &["10.244.0.6:8080"]),
        service("two", "10.96.1.5", 80, &["10.244.0.6:8080"]),
        service("outside", "8.8.8.8", 80, &["10.244.0.6:8080"]),
        service("api", "10.96.0.1", 443, &["10.244.0.6:8080"]),
        service("loop", "10.96.1.6", 80, &["10.96.1.6:80", "127.0.0.1:80", "10.244.0.1:80"]),
    ];
    assert_eq!(
        set_services(&mut stage, &services),
        json!([
            "Service default/two is not served at 10.96.1.5:80: another one is there",
            "Service default/outside is not served: 8.8.8.8 is not in 10.96.0.0/12",
            "Service default/api is not served: 10.96.0.1 is the node's",
            "3 of the addresses behind 10.96.1.6:80 of Service default/loop are not served: they are not pods', or more than 256",
        ])
    );
    let many: Vec<Value> = (0..5000)
        .map(|number| {
            service(
                "many",
                &format!("10.97.{}.{}", number / 250, number % 250),
                80,
                &["10.244.0.6:80"],
            )
        })
        .collect();
    let told = set_services(&mut stage, &many);
    assert_eq!(told.as_array().unwrap().len(), 21);
    assert_eq!(told[20], "884 more Services or addresses are not served");
    assert_eq!(set_services(&mut stage, &[]), json!([]));
}

#[test]
fn names_are_answered_in_all_forms() {
    for user in node_users() {
        let mut stage = NetworkStage::open(user, "public");
        let pod = stage.add_pod("10.244.0.5");
        let _names = stage.start_python(stage.world(), NAME_SERVER, &[]);
        let mut web = service("web", "10.96.1.5", 80, &[]);
        web["ports"][0]["name"] = json!("http");
        let mut bare = service("bare", "10.96.1.6", 80, &["10.244.0.5:1", "10.244.0.6:1"]);
        bare["address"] = Value::Null;
        set_services(&mut stage, &[web, bare]);
        let dig = |question: &str| stage.dig(&pod, question);
        assert_eq!(dig("+short web.default.svc.cluster.local"), "10.96.1.5");
        assert_eq!(dig("+short +tcp web.default.svc.cluster.local"), "10.96.1.5");
        assert_eq!(dig("+short +noedns web.default.svc.cluster.local"), "10.96.1.5");
        assert_eq!(dig("+short kubernetes.default.svc.cluster.local"), "10.96.0.1");
        assert_eq!(dig("+short bare.default.svc.cluster.local"), "10.244.0.5\n10.244.0.6");
        assert_eq!(
            dig("+short SRV _http._tcp.web.default.svc.cluster.local"),
            "0 100 80 web.default.svc.cluster.local."
        );
        for kind in ["AAAA", "TXT"] {
            let answer = dig(&format!("{kind} web.default.svc.cluster.local"));
            assert!(
                answer.contains("status: NOERROR")
                    && answer.contains("ANSWER: 0")
                    && answer.contains("SOA"),
                "{answer}"
            );
        }
        let answer = dig("github.com.default.svc.cluster.local");
        assert!(answer.contains("status: NXDOMAIN") && answer.contains("SOA"), "{answer}");
        // A name server that is slow to answer is one that could not be asked.
        let dig_outside = |question: &str| {
            let mut answer = String::new();
            await_condition(question, || {
                answer = stage.dig(&pod, question);
                !answer.is_empty()
            });
            answer
        };
        assert_eq!(dig_outside("+short github.com"), PUBLIC);
        assert_eq!(dig_outside("+short +tcp github.com"), PUBLIC);
        // The node's side asks again over TCP.
        assert_eq!(dig_outside("+short big.example.org"), PUBLIC);
        // The C library, with the search list that pods have.
        let resolver = "
import ctypes, os, socket, subprocess, sys, tempfile
with tempfile.NamedTemporaryFile('w', delete=False) as file:
    file.write('nameserver 10.96.0.10\\nsearch default.svc.cluster.local svc.cluster.local cluster.local\\noptions ndots:5\\n')
os.chmod(file.name, 0o644)
script = 'mount --bind ' + file.name + ' /etc/resolv.conf; getent ahostsv4 web; getent ahostsv4 web.default; getent ahostsv4 web.default.svc; getent ahostsv4 github.com; rm ' + file.name
lines = subprocess.check_output(['unshare', '-m', 'sh', '-ec', script], text=True).splitlines()
print(' '.join(line.split()[0] for line in lines if 'STREAM' in line))
";
        assert_eq!(
            stage.run_python(&pod, resolver, &[]),
            format!("10.96.1.5 10.96.1.5 10.96.1.5 {PUBLIC}")
        );
    }
}

#[test]
fn pods_reach_public_addresses_and_no_others() {
    for user in node_users() {
        let mut stage = NetworkStage::open(user, "public");
        let pod = stage.add_pod("10.244.0.5");
        let ports = ["443", "5432"];
        let servers =
            ports.map(|port| stage.start_python(stage.world(), COUNTING_SERVER, &[port, "", port]));
        let own = stage.start_python(stage.host(), COUNTING_SERVER, &["host", "", "443"]);
        let ask = |address: &str, port: &str| {
            stage.run_python(&pod, COUNTING_CLIENT, &[address, port, "9"])
        };
        for port in ports {
            assert_eq!(
                ask(PUBLIC, port),
                format!("{port} 9"),
                "the second port is listened on when it is asked for"
            );
        }
        for private in [
            PRIVATE,
            "192.168.7.1",
            "93.184.216.1",
            "169.254.169.254",
            "10.1.2.3",
            "10.244.0.99",
            "10.99.9.9",
        ] {
            let answer = ask(private, "443");
            let is_denied =
                ["RESET", "EHOSTUNREACH", "EPIPE", "ENOTCONN"].contains(&answer.as_str());
            assert!(is_denied, "{private} as {:?}: {answer}", stage.user());
        }
        assert_eq!(ask("127.0.0.1", "443"), "ECONNREFUSED", "the pod's own loopback");
        assert_eq!(ask("10.244.0.1", "8080"), "ECONNREFUSED", "the gateway serves nothing itself");
        drop((servers, own));
        let answer = ask(PUBLIC, "443");
        assert_eq!(answer, "RESET", "what is refused outside is reset");
    }
}

#[test]
fn pods_reach_nothing_or_everything_if_that_is_asked_for() {
    let user = node_users()[0];
    for (egress, is_open) in [("none", false), ("host", true)] {
        let mut stage = NetworkStage::open(user, egress);
        let pod = stage.add_pod("10.244.0.5");
        let _names = stage.start_python(stage.world(), NAME_SERVER, &[]);
        let _server = stage.start_python(stage.world(), COUNTING_SERVER, &["world", "", "443"]);
        for address in [PUBLIC, PRIVATE] {
            let answer = stage.run_python(&pod, COUNTING_CLIENT, &[address, "443", "9"]);
            let is_reached = answer == "world 9";
            assert!(is_reached == is_open, "{egress} {address}: {answer}");
        }
        let expected = if is_open { "status: NOERROR" } else { "status: REFUSED" };
        await_condition(expected, || stage.dig(&pod, "github.com").contains(expected));
    }
}

#[test]
fn the_api_server_is_at_its_address_in_the_cluster() {
    for user in node_users() {
        let mut stage = NetworkStage::open(user, "none");
        let pod = stage.add_pod("10.244.0.5");
        assert_eq!(
            stage.run_python(&pod, COUNTING_CLIENT, &["10.96.0.1", "443", "1"]),
            "RESET",
            "not there yet"
        );
        let _api = stage.start_python(stage.host(), COUNTING_SERVER, &["api", "127.0.0.1", "6443"]);
        assert_eq!(
            stage.run_python(&pod, COUNTING_CLIENT, &["10.96.0.1", "443", "100000"]),
            "api 100000"
        );
        // What apron listens on is not there otherwise.
        assert_eq!(
            stage.run_python(&pod, COUNTING_CLIENT, &["10.244.0.1", "6443", "1"]),
            "ECONNREFUSED"
        );
    }
}

#[tokio::test]
async fn apron_reaches_pods_through_the_nodes_socket_and_other_users_do_not() {
    for user in node_users() {
        let mut stage = NetworkStage::open(user, "none");
        let pod = stage.add_pod("10.244.0.5");
        let _server = stage.start_python(&pod, COUNTING_SERVER, &["pod", "", "9443"]);
        assert!(!fits_socket_address(&stage.state.join("node.sock")));
        let connected = connect_pod(&stage.state, "10.244.0.5:9443".parse().unwrap()).await;
        if user == NodeUser::Nobody {
            // The directory lets root in, the node does not.
            assert!(connected.is_err());
            continue;
        }
        let mut connection = connected.unwrap();
        connection.write_all(b"hello").await.unwrap();
        connection.shutdown().await.unwrap();
        let mut answer = String::new();
        connection.read_to_string(&mut answer).await.unwrap();
        assert_eq!(answer, "pod 5");
        let refused = |address: &str| {
            let (directory, address) = (stage.state.clone(), address.parse().unwrap());
            async move { connect_pod(&directory, address).await.unwrap_err().to_string() }
        };
        assert_eq!(
            refused("10.244.0.5:1").await,
            "cannot connect to 10.244.0.5:1 in the network of pods: Connection refused (os error 111)"
        );
        for elsewhere in ["10.244.0.9:9443", "127.0.0.1:53", "10.96.0.10:53", "93.184.216.34:443"] {
            assert!(refused(elsewhere).await.contains("there is no pod at"), "{elsewhere}");
        }
        assert_eq!(mode_of(&stage.state), 0o700);
        assert_eq!(mode_of(&stage.state.join("node.sock")), 0o600);
        assert_eq!(mode_of(&stage.state.join("host.sock")), 0o600);
    }
}

#[test]
fn probes_fail_in_the_kubelets_words() {
    let mut stage = NetworkStage::open(node_users()[0], "none");
    let pod = stage.add_pod("10.244.0.5");
    let _web = stage.start_python(&pod, WEB_SERVER, &[]);
    let _health = stage.start_scenario(&pod, &["__health-server", "10.244.0.5:9090"]);
    let mut failure = |target: Value| {
        let result = stage.order(&json!({ "probe": [target, 60_000] }));
        result["failure"].as_str().unwrap_or_default().to_owned()
    };
    let http = |port: u16, path: &str, tls: bool| json!({ "http": { "address": format!("10.244.0.5:{port}"), "tls": tls, "path": path, "headers": [] } });
    assert_eq!(failure(http(8080, "/200", false)), "");
    assert_eq!(failure(http(8080, "/302?a=b", false)), "");
    assert_eq!(failure(http(8080, "/503", false)), "HTTP probe failed with statuscode: 503");
    assert_eq!(
        failure(http(8081, "/healthz", false)),
        "Get \"http://10.244.0.5:8081/healthz\": dial tcp 10.244.0.5:8081: connect: connection refused"
    );
    assert_eq!(
        failure(http(8080, "/200", true)),
        "Get \"https://10.244.0.5:8080/200\": http: server gave HTTP response to HTTPS client"
    );
    assert_eq!(failure(http(8443, "/", true)), "", "a certificate that nobody vouches for");
    assert_eq!(failure(json!({ "tcp": { "address": "10.244.0.5:8080" } })), "");
    assert_eq!(
        failure(json!({ "tcp": { "address": "10.244.0.5:1" } })),
        "dial tcp 10.244.0.5:1: connect: connection refused"
    );
    assert_eq!(
        failure(json!({ "grpc": { "address": "10.244.0.5:1", "service": "" } })),
        "error: failed to connect service at \"10.244.0.5:1\": dial tcp 10.244.0.5:1: connect: connection refused"
    );
    let grpc =
        |service: &str| json!({ "grpc": { "address": "10.244.0.5:9090", "service": service } });
    assert_eq!(failure(grpc("")), "");
    assert_eq!(failure(grpc("open")), "");
    assert_eq!(failure(grpc("closed")), "service unhealthy (responded with \"NOT_SERVING\")");
    assert_eq!(
        failure(grpc("none")),
        "error: this server does not implement the grpc health protocol (grpc.health.v1.Health): as it was asked for"
    );
    assert!(failure(json!({ "tcp": { "address": "10.96.0.10:53" } })).contains("there is no pod"));
}

#[test]
fn pods_are_attached_once_and_only_to_addresses_for_pods() {
    let mut stage = NetworkStage::open(node_users()[0], "none");
    let pod = stage.add_pod("10.244.0.5");
    let mut refusal = |name: &str, address: &str, process: u32| {
        let sandbox = json!({ "pod": name, "namespace": "default", "hostname": "pod", "address": address, "hosts": [] });
        stage.order(&json!({ "attach": [sandbox, process] }))["error"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    };
    for (name, address) in [("other", "10.244.0.5"), ("10.244.0.5", "10.244.0.6")] {
        assert!(
            refusal(name, address, pod.id()).contains("is attached already"),
            "{name} {address}"
        );
    }
    for address in ["10.244.0.1", "10.244.0.0", "10.244.0.255", "10.245.0.6", "127.0.0.1"] {
        assert!(
            refusal("other", address, pod.id()).contains("is not an address for pods"),
            "{address}"
        );
    }
    assert!(
        refusal("other", "10.244.0.6", u32::MAX >> 2)
            .starts_with("cannot connect a pod to the bridge")
    );
    assert!(!refusal("other", "10.244.0.6", 0).is_empty(), "no process has that number");
    let other = stage.add_pod("10.244.0.6");
    assert_ne!(other.id(), pod.id());
}
