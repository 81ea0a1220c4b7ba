//! Connections by TLS.

use crate::client::serve;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use windrow::Db;
use windrow_server::{Config, Server, StartError, Tls};

#[test]
fn a_client_that_trusts_the_certificate_is_served_and_others_are_not() {
    let dir = tempfile::tempdir().unwrap();
    let signed = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let tls = Tls { port: 0, certificates: dir.path().join("cert"), key: dir.path().join("key") };
    std::fs::write(&tls.certificates, signed.cert.pem()).unwrap();
    std::fs::write(&tls.key, signed.signing_key.serialize_pem()).unwrap();
    let config = Config {
        tls: Some(tls.clone()),
        request_time_max: Duration::from_secs(3),
        ..Config::default()
    };
    let (_db, server) = serve(&dir.path().join("db"), config);
    let [plain, encrypted] = server.addresses() else { panic!("{:?}", server.addresses()) };
    assert_ne!(plain.port(), encrypted.port());

    let mut roots = RootCertStore::empty();
    roots.add(signed.cert.der().clone()).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from("localhost").unwrap();
    let session = ClientConnection::new(Arc::new(config), name).unwrap();
    let mut client = StreamOwned::new(session, TcpStream::connect(encrypted).unwrap());
    // More than a record of TLS, in both directions.
    let value = "x".repeat(100_000);
    let request = format!("*3\r\n$3\r\nSET\r\n$1\r\na\r\n$100000\r\n{value}\r\nGET a\r\n");
    client.write_all(request.as_bytes()).unwrap();
    let mut reply = vec![0; "+OK\r\n$100000\r\n".len() + value.len() + 2];
    client.read_exact(&mut reply).unwrap();
    assert_eq!(reply, format!("+OK\r\n$100000\r\n{value}\r\n").as_bytes());

    // A connection whose client does not speak TLS, or sends nothing, is
    // closed.
    for bytes in [&b"PING\r\n"[..], b""] {
        let mut other = TcpStream::connect(encrypted).unwrap();
        other.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        other.write_all(bytes).unwrap();
        let mut rest = Vec::new();
        let _ = other.read_to_end(&mut rest);
        assert!(!rest.starts_with(b"+PONG"), "{rest:?}");
    }
}

#[test]
fn files_that_are_no_certificate_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open(dir.path().join("db")).unwrap();
    let tls = Tls { port: 0, certificates: dir.path().join("cert"), key: dir.path().join("key") };
    let start = || {
        let config = Config { port: 0, tls: Some(tls.clone()), ..Config::default() };
        match Server::start(db.clone(), config) {
            Err(StartError::Config(why)) => why,
            other => panic!("{other:?}"),
        }
    };
    assert!(start().contains("--tls-cert-file"));
    std::fs::write(&tls.certificates, "no PEM").unwrap();
    assert!(start().contains("there are none"));
    let signed = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    std::fs::write(&tls.certificates, signed.cert.pem()).unwrap();
    assert!(start().contains("--tls-key-file"));
}
