//! The page and the metrics by HTTP.
//!
//! Owns: the addresses, the access check, and the thread that answers. Never does: choose what is
//! shown.

#![allow(clippy::disallowed_methods, reason = "the dashboard has one thread of its own")]

use crate::connection::Limited;
use crate::feed::{Feed, Message};
use crate::{Events, Metrics, page, trees};
use axum::extract::{Request, State};
use axum::http::uri::Authority;
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::sse::{Event as Sent, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use axum::{Router, routing};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use futures_util::stream::{self, Stream, StreamExt};
use parking_lot::Mutex;
use std::convert::Infallible;
use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use subtle::ConstantTimeEq;
use tokio::sync::{broadcast, watch};
use windrow::Db;

/// The time between two messages of changes to the page.
const EVERY: Duration = Duration::from_secs(1);
/// The most pages that are served messages at once.
const WATCHERS_MAX: usize = 64;
/// Nothing is loaded from elsewhere, and no other page may frame this one.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
                      img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Adds metrics of the program to those of the database.
pub type Source = Arc<dyn Fn(&mut Metrics) + Send + Sync>;

/// The address of the dashboard, and who may see it.
#[derive(Clone)]
pub struct Settings {
    /// Its address, with port 0 for a free port (default: 127.0.0.1:8080). An address that is not
    /// loopback needs a password.
    pub address: SocketAddr,
    /// The password that HTTP's basic authentication asks for, with any user (default: none).
    pub password: Option<String>,
    /// Metrics of the program (default: none).
    pub source: Option<Source>,
}

impl Default for Settings {
    fn default() -> Settings {
        let address = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 8080);
        Settings { address, password: None, source: None }
    }
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings").field("address", &self.address).finish_non_exhaustive()
    }
}

/// A dashboard that runs until it is dropped.
#[derive(Debug)]
pub struct Dashboard {
    address: SocketAddr,
    stop: watch::Sender<bool>,
    thread: Option<JoinHandle<()>>,
}

struct Shown {
    db: Db,
    settings: Settings,
    feed: Mutex<Feed>,
    told: broadcast::Sender<Message>,
}

impl Dashboard {
    /// Shows a database on a thread of its own. `events` is the listener that the database was opened with;
    /// another one shows no events.
    ///
    /// # Errors
    /// `InvalidInput` for an address that other machines reach, without a password; the system's
    /// error, where it cannot listen there.
    pub fn start(db: Db, events: Arc<Events>, settings: Settings) -> io::Result<Dashboard> {
        if !settings.address.ip().is_loopback() && settings.password.is_none() {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "a client that reaches the dashboard sees keys: set a password, or listen at 127.0.0.1",
            ));
        }
        let listener = TcpListener::bind(settings.address)?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (stop, stopped) = watch::channel(false);
        let feed = Mutex::new(Feed::new(db.clone(), events));
        let shown = Arc::new(Shown { db, settings, feed, told: broadcast::channel(16).0 });
        let thread =
            std::thread::Builder::new().name("windrow-dash".to_owned()).spawn(move || {
                runtime.block_on(serve(listener, shown, stopped));
            })?;
        Ok(Dashboard { address, stop, thread: Some(thread) })
    }

    /// Returns its address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Dashboard {
    fn drop(&mut self) {
        // The thread may have ended already.
        let _ = self.stop.send(true);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

async fn serve(listener: TcpListener, shown: Arc<Shown>, stopped: watch::Receiver<bool>) {
    let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
    let router = Router::new()
        .route("/", routing::get(async || typed("text/html; charset=utf-8", page::live())))
        .route("/style.css", routing::get(async || typed("text/css; charset=utf-8", page::STYLE)))
        .route(
            "/script.js",
            routing::get(async || typed("text/javascript; charset=utf-8", page::SCRIPT)),
        )
        .route("/events", routing::get(events))
        .route("/metrics", routing::get(metrics))
        .route("/state.json", routing::get(state))
        .layer(middleware::from_fn_with_state(Arc::clone(&shown), guard))
        .with_state(Arc::clone(&shown));
    let mut until = stopped.clone();
    tokio::select! {
        // If the server fails, there is no caller to return the error to.
        _ = axum::serve(Limited::new(listener), router) => {}
        () = tell(shown) => {}
        _ = until.wait_for(|is_stopped| *is_stopped) => {}
    }
}

/// Sends the changes to all pages, as long as there are any.
async fn tell(shown: Arc<Shown>) {
    loop {
        tokio::time::sleep(EVERY).await;
        if shown.told.receiver_count() == 0 {
            continue;
        }
        let messages = shown.feed.lock().step();
        for message in messages {
            // The last page may just have left.
            let _ = shown.told.send(message);
        }
    }
}

fn typed(kind: &'static str, body: impl IntoResponse) -> Response {
    ([(header::CONTENT_TYPE, kind)], body).into_response()
}

async fn metrics(State(shown): State<Arc<Shown>>) -> Response {
    let mut metrics = Metrics::of(&shown.db);
    if let Some(source) = &shown.settings.source {
        source(&mut metrics);
    }
    typed("text/plain; version=0.0.4; charset=utf-8", metrics.text())
}

async fn state(State(shown): State<Arc<Shown>>) -> Response {
    typed("application/json", trees::state(&shown.db).to_string())
}

async fn events(State(shown): State<Arc<Shown>>) -> Response {
    if shown.told.receiver_count() >= WATCHERS_MAX {
        return (StatusCode::SERVICE_UNAVAILABLE, "too many pages are open").into_response();
    }
    let told = shown.told.subscribe();
    let first = stream::iter(shown.feed.lock().whole());
    let later = stream::unfold(told, async |mut told| {
        loop {
            match told.recv().await {
                Ok(message) => return Some((message, told)),
                // A slow page misses some messages.
                Err(broadcast::error::RecvError::Lagged(_)) => {}
                Err(broadcast::error::RecvError::Closed) => return None,
            }
        }
    });
    Sse::new(sent(first.chain(later))).keep_alive(KeepAlive::default()).into_response()
}

fn sent(messages: impl Stream<Item = Message>) -> impl Stream<Item = Result<Sent, Infallible>> {
    messages.map(|(name, data)| Ok(Sent::default().event(name).data(&*data)))
}

/// Refuses requests without access, and limits the browser to the page's own parts.
async fn guard(State(shown): State<Arc<Shown>>, request: Request, next: Next) -> Response {
    let mut response = match refused(&shown.settings, &request) {
        Some(refused) => refused,
        None => next.run(request).await,
    };
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CACHE_CONTROL, "no-store"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

fn refused(settings: &Settings, request: &Request) -> Option<Response> {
    let value = |name| request.headers().get(name).and_then(|value| value.to_str().ok());
    if let Some(password) = &settings.password {
        if value(header::AUTHORIZATION)
            .and_then(password_of)
            .is_some_and(|said| said.ct_eq(password.as_bytes()).into())
        {
            return None;
        }
        let ask = [(header::WWW_AUTHENTICATE, "Basic realm=\"windrow\"")];
        return Some((StatusCode::UNAUTHORIZED, ask, "a password is needed").into_response());
    }
    // Another site's name may resolve to this address: its scripts would then read the page as
    // their own.
    let host = value(header::HOST).unwrap_or_default();
    let is_own = host.parse::<Authority>().is_ok_and(|host| {
        let name = host.host().trim_matches(['[', ']']);
        name.eq_ignore_ascii_case("localhost") || name.parse::<IpAddr>().is_ok()
    });
    (!is_own).then(|| (StatusCode::FORBIDDEN, "ask for localhost, or an address").into_response())
}

/// Returns the password of HTTP's basic authentication.
fn password_of(header: &str) -> Option<Vec<u8>> {
    let mut bytes = BASE64_STANDARD.decode(header.strip_prefix("Basic ")?).ok()?;
    let colon = bytes.iter().position(|byte| *byte == b':')?;
    Some(bytes.split_off(colon + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_read_from_basic_authentication() {
        assert_eq!(password_of("Basic YTpzZWNyZXQ="), Some(b"secret".to_vec()));
        assert_eq!(password_of("Basic Ong="), Some(b"x".to_vec()));
        assert_eq!(password_of("Basic YQ=="), None, "no colon");
        assert_eq!(password_of("Bearer YTpzZWNyZXQ="), None);
        assert_eq!(password_of("Basic !"), None);
    }
}
