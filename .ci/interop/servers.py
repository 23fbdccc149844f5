"""Wrong addresses, firewalls, and reloads, played by nginx and HAProxy before the simulator: nothing is in doubt, and no task is made where none should be."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request

shotlist, simulator, certificates = sys.argv[1:]
backend = simulator.removeprefix("http://")


def free_ports(count):
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def openssl(*words):
    subprocess.run(["openssl", *words], check=True, capture_output=True)


openssl("x509", "-inform", "der", "-in", f"{certificates}/server.der", "-out", "server.crt")
openssl("pkey", "-inform", "der", "-in", f"{certificates}/server.key.der", "-out", "server.key")
with open("both.pem", "w") as both:
    both.write(open("server.crt").read() + open("server.key").read())
authority = f"{certificates}/authority.pem"

dead_nginx, tls_nginx, client_nginx, dead_haproxy, client_haproxy, proxy_haproxy, tls_haproxy, firewall, well, http2 = free_ports(10)
folder = os.getcwd()
open("nginx.conf", "w").write(f"""
daemon off; pid {folder}/nginx.pid; error_log {folder}/nginx.log;
events {{}}
http {{
    access_log off; client_body_temp_path {folder}/n1; proxy_temp_path {folder}/n2; fastcgi_temp_path {folder}/n3;
    uwsgi_temp_path {folder}/n4; scgi_temp_path {folder}/n5;
    ssl_certificate {folder}/server.crt; ssl_certificate_key {folder}/server.key;
    server {{ listen 127.0.0.1:{dead_nginx}; location / {{ proxy_pass http://127.0.0.1:1; }} }}
    server {{ listen 127.0.0.1:{tls_nginx} ssl; location / {{ proxy_pass {simulator}; }} }}
    server {{
        listen 127.0.0.1:{client_nginx} ssl; ssl_client_certificate {authority}; ssl_verify_client on;
        location / {{ proxy_pass {simulator}; }}
    }}
    server {{ listen 127.0.0.1:{http2} ssl http2; keepalive_requests 25; location / {{ proxy_pass {simulator}; }} }}
}}
""")
open("haproxy.cfg", "w").write(f"""
defaults
    mode http
    timeout connect 2s
    timeout client 10s
    timeout server 10s
backend simulator
    server s {backend}
backend dead
    server s 127.0.0.1:1
frontend dead
    bind 127.0.0.1:{dead_haproxy}
    default_backend dead
frontend client_certificate
    bind 127.0.0.1:{client_haproxy} ssl crt {folder}/both.pem ca-file {authority} verify required
    default_backend simulator
frontend proxy_protocol
    bind 127.0.0.1:{proxy_haproxy} accept-proxy
    default_backend simulator
frontend tls
    bind 127.0.0.1:{tls_haproxy} ssl crt {folder}/both.pem
    default_backend simulator
frontend firewall
    bind 127.0.0.1:{firewall}
    option http-buffer-request
    http-request return status 403 content-type text/html string "<html>blocked</html>" if METH_POST {{ req.body -m sub "number 1" }}
    default_backend simulator
frontend well
    bind 127.0.0.1:{well} ssl crt {folder}/both.pem alpn h2,http/1.1
    default_backend simulator
""")


def wait_for(port):
    for _ in range(200):
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.05)
    raise SystemExit(f"nothing listens on port {port}")


def charges():
    return len(json.load(urllib.request.urlopen(f"{simulator}/_sandbox/ledger", timeout=10))["charges"])


def ended(name, url, jobs, meanwhile=lambda ended: None):
    """Runs a batch: its exit code, the states of its jobs, how many tasks were made, and what it said."""
    os.makedirs(name)
    lines = "".join(f"  - {{ id: j{n}, prompt: number {n} }}\n" for n in range(jobs))
    open(f"{name}/m.yaml", "w").write(f"version: 1\ndefaults: {{ model: alpha-2 }}\njobs:\n{lines}")
    words = ["run", "m.yaml", "--yes", "--no-download", "--first-poll", "0s", "--poll-interval", "200ms", "--poll-floor", "50ms", "--concurrency", "64"]
    environment = {**os.environ, "SHOTLIST_BASE_URL": url, "SHOTLIST_API_KEY": "k", "SSL_CERT_FILE": authority}
    before = charges()
    with subprocess.Popen([shotlist, *words], cwd=name, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as program:
        over = threading.Timer(120, program.kill)
        over.start()
        beside = threading.Thread(target=meanwhile, args=[program.poll])
        beside.start()
        said = "".join(line for line in program.stderr if not line.startswith("completed"))
        over.cancel()
    beside.join()
    found = [job["state"] for job in json.load(open(f"{name}/shotlist-out/m/report.json"))["jobs"]]
    return program.returncode, found, charges() - before, said


def run(name, url, exit_code, states):
    code, found, made, said = ended(name, url, len(states))
    assert (code, found, made) == (exit_code, states, states.count("completed")), (name, code, found, made, said)
    print(f"{name}: exit {code}")


def run_while_workers_are_replaced(name, url):
    """A worker that ends may reset its connection, which discards its GOAWAY: then a submission is in doubt, and never sent again."""
    code, found, made, said = ended(name, url, 2000, reload)
    completed, doubts = found.count("completed"), found.count("in_doubt")
    assert code == (7 if doubts else 0) and completed + doubts == 2000 and doubts <= 20, (name, code, doubts, said)
    assert completed <= made <= 2000, (name, made, doubts, said)
    print(f"{name}: exit {code}, {doubts} in doubt")


def reload(ended):
    """Lets nginx replace its workers again and again; each says so with GOAWAY, as after every 25th request."""
    while ended() is None:
        servers[0].send_signal(signal.SIGHUP)
        time.sleep(0.2)


servers = [subprocess.Popen(["nginx", "-c", f"{folder}/nginx.conf"]), subprocess.Popen(["haproxy", "-f", "haproxy.cfg"])]
try:
    for port in (dead_nginx, tls_nginx, client_nginx, dead_haproxy, firewall, well, http2):
        wait_for(port)
    pending = ["pending"] * 4
    run("nginx-dead-upstream", f"http://127.0.0.1:{dead_nginx}", 6, pending)
    run("nginx-plain-http-to-tls", f"http://127.0.0.1:{tls_nginx}", 6, pending)
    run("nginx-client-certificate", f"https://127.0.0.1:{client_nginx}", 6, pending)
    run("haproxy-dead-upstream", f"http://127.0.0.1:{dead_haproxy}", 6, pending)
    run("haproxy-plain-http-to-tls", f"http://127.0.0.1:{tls_haproxy}", 6, pending)
    run("haproxy-client-certificate", f"https://127.0.0.1:{client_haproxy}", 6, pending)
    run("haproxy-proxy-protocol", f"http://127.0.0.1:{proxy_haproxy}", 6, pending)
    run("haproxy-firewall", f"http://127.0.0.1:{firewall}", 1, ["completed", "rejected", "completed", "completed"])
    run("haproxy-well", f"https://127.0.0.1:{well}", 0, ["completed"] * 4)
    run_while_workers_are_replaced("nginx-http2-reloads", f"https://127.0.0.1:{http2}")
finally:
    for server in servers:
        server.terminate()
        server.wait(10)
