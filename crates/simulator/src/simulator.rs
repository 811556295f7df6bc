//! The host's handle on a simulator.

use std::{
    io,
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::SystemTime,
};

use bytes::Bytes;
use serde_json::Value;
use tokio::{
    net::{TcpListener, TcpSocket},
    sync::watch,
    task::{JoinHandle, JoinSet},
};

use crate::{
    access::Access,
    builder::Builder,
    connection::{ConnectionControl, serve_connection},
    faults::{Ending, Faults, RequestMatch, StreamAction},
    record::Counts,
    request::ReceivedRequest,
    resource::{Resource, ResourceKey},
    shared::Shared,
    store::{Collection, Origin, Preconditions, RawObject, Target, WriteError, object_key},
    watch::{WatchCommand, WatchOrder},
};

/// How many connections may wait to be accepted.
const BACKLOG: u32 = 1024;

/// A running simulator. Dropping it ends it, with all its connections.
///
/// All methods may be called from any thread; a change is visible to watches and lists when the call returns.
#[derive(Debug)]
pub struct Simulator {
    shared: Arc<Shared>,
    address: SocketAddr,
    acceptor: Mutex<Option<Acceptor>>,
}

#[derive(Debug)]
struct Acceptor {
    stop: watch::Sender<bool>,
    task: JoinHandle<()>,
}

impl Simulator {
    /// Settings other than the defaults.
    pub fn builder() -> Builder {
        Builder::new()
    }

    /// Starts a simulator with the default settings, on a free port of 127.0.0.1 and the current tokio runtime.
    ///
    /// # Errors
    ///
    /// If no port can be listened on.
    ///
    /// # Cancel safety
    ///
    /// Nothing listens if the future is dropped before it is ready.
    pub async fn start() -> io::Result<Self> {
        Self::builder().start().await
    }

    pub(crate) async fn listen(shared: Shared, address: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        let shared = Arc::new(shared);
        let acceptor = Mutex::new(Some(Acceptor::start(Arc::clone(&shared), listener)));
        Ok(Self {
            shared,
            address,
            acceptor,
        })
    }

    /// `http://127.0.0.1:PORT`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The time of the simulator's clock, which stamps its objects.
    pub fn now(&self) -> SystemTime {
        self.shared.now()
    }

    /// Tokens and rules.
    pub fn access(&self) -> &Access {
        &self.shared.access
    }

    /// Faults for requests to come.
    pub fn faults(&self) -> &Faults {
        &self.shared.faults
    }

    /// Serves a resource from now on; one that is served already keeps its objects.
    pub fn register(&self, resource: Resource) {
        self.shared.store().register(resource);
    }

    /// Stops serving a resource: its objects are gone, its watches end, requests for it get 404. Returns whether it was
    /// served.
    pub fn unregister(&self, resource: &str) -> bool {
        let mut store = self.shared.store();
        store.named(resource).is_some_and(|key| store.unregister(&key))
    }

    /// Creates an object of `resource` (`configmaps`, `deployments.apps`) in the namespace that it names, and returns it
    /// as it is stored. `uid`, `creationTimestamp`, `generation` and `status` are kept if they are given.
    ///
    /// # Errors
    ///
    /// If the resource is not served, or the object exists or is not acceptable.
    pub fn create(&self, resource: &str, object: Value) -> Result<Value, WriteError> {
        let key = self.key(resource)?;
        let stored = self
            .shared
            .store()
            .create(&key, "", object, self.shared.writing(Origin::Host))?;
        read(&stored.object)
    }

    /// Creates an object, or makes the existing one like it. One that is like it already is left alone. The `status`
    /// of the existing one stays unless another is given.
    ///
    /// # Errors
    ///
    /// If the resource is not served, or the object is not acceptable.
    pub fn apply(&self, resource: &str, object: Value) -> Result<Value, WriteError> {
        let key = self.key(resource)?;
        let stored = self
            .shared
            .store()
            .apply(&key, object, self.shared.writing(Origin::Host))?;
        read(&stored.object)
    }

    /// Merges a patch into an object, `status` excepted where that is a subresource. `namespace` is empty for a
    /// cluster-scoped object.
    ///
    /// # Errors
    ///
    /// If there is no such resource or object, or the result is not acceptable.
    pub fn patch(
        &self,
        resource: &str,
        namespace: &str,
        name: &str,
        patch: &Value,
    ) -> Result<Value, WriteError> {
        self.merge(resource, (namespace, name), patch, false)
    }

    /// Merges a patch into an object's `status`: `{"status":{…}}`.
    ///
    /// # Errors
    ///
    /// If there is no such resource or object.
    pub fn patch_status(
        &self,
        resource: &str,
        namespace: &str,
        name: &str,
        patch: &Value,
    ) -> Result<Value, WriteError> {
        self.merge(resource, (namespace, name), patch, true)
    }

    /// Deletes an object; one with finalizers is only marked.
    ///
    /// # Errors
    ///
    /// If there is no such resource or object.
    pub fn delete(&self, resource: &str, namespace: &str, name: &str) -> Result<(), WriteError> {
        let key = self.key(resource)?;
        let target = Target {
            key: &key,
            namespace,
            name,
            status: false,
        };
        let writing = self.shared.writing(Origin::Host);
        self.shared
            .store()
            .delete(target, &Preconditions::default(), writing)?;
        Ok(())
    }

    /// Deletes an object; the watch line carries exactly `tombstone` as its object.
    ///
    /// # Errors
    ///
    /// If there is no such resource or object.
    pub fn delete_raw(
        &self,
        resource: &str,
        namespace: &str,
        name: &str,
        tombstone: impl Into<Bytes>,
    ) -> Result<(), WriteError> {
        let key = self.key(resource)?;
        self.shared
            .store()
            .delete_raw(&key, (namespace, name), Some(tombstone.into()))?;
        Ok(())
    }

    /// Puts an object in whose text is sent as it is; in the place of the one that lives there.
    ///
    /// # Errors
    ///
    /// If the resource is not served, or the object's place is neither given nor in its text.
    pub fn put_raw(&self, resource: &str, object: RawObject) -> Result<(), WriteError> {
        let key = self.key(resource)?;
        self.shared.store().put_raw(&key, object)?;
        Ok(())
    }

    /// An object as WATCH sends it.
    pub fn get_raw(&self, resource: &str, namespace: &str, name: &str) -> Option<Bytes> {
        let key = self.key(resource).ok()?;
        let place = object_key(namespace, name);
        self.shared
            .store()
            .collection(&key)?
            .object(&place)
            .map(|stored| stored.object.clone())
    }

    /// An object; `None` if there is none, or if its raw text cannot be read.
    pub fn get(&self, resource: &str, namespace: &str, name: &str) -> Option<Value> {
        serde_json::from_slice(&self.get_raw(resource, namespace, name)?).ok()
    }

    /// All objects of a resource as WATCH sends them, in the order of a list.
    pub fn objects(&self, resource: &str) -> Vec<Bytes> {
        let Ok(key) = self.key(resource) else {
            return Vec::new();
        };
        let store = self.shared.store();
        let collection = store.collection(&key).into_iter();
        collection
            .flat_map(Collection::objects)
            .map(|stored| stored.object.clone())
            .collect()
    }

    /// The current `resourceVersion`, as a list would tell it.
    pub fn resource_version(&self) -> String {
        let store = self.shared.store();
        store.versions.text(store.versions.current())
    }

    /// Raises the counter of versions to at least this one, as changes of other resources would.
    pub fn advance_resource_version(&self, version: u64) {
        self.shared.store().versions.advance_to(version);
    }

    /// Forgets the history: a watch from a version before now is answered with 410, and so is a page of a list that
    /// began before now. Open watches go on.
    pub fn compact(&self) {
        self.shared.store().compact();
    }

    /// What was asked so far, and what is open.
    pub fn counts(&self) -> Counts {
        self.shared.record.counts()
    }

    /// The last 100,000 requests, oldest first.
    pub fn requests(&self) -> Vec<ReceivedRequest> {
        self.shared.record.log()
    }

    /// Empties the log of requests; the counters go on.
    pub fn clear_requests(&self) {
        self.shared.record.clear_log();
    }

    /// Sends a bookmark at the current version to all open watches, whether or not they asked for bookmarks. Returns to
    /// how many.
    pub fn send_bookmark_now(&self) -> usize {
        self.command(&RequestMatch::any(), WatchOrder::Bookmark)
    }

    /// Sends bytes into the open watches whose request matches, after all changes so far; whatever they are, and with
    /// nothing added: a line needs its line end. Returns into how many.
    pub fn inject(&self, watches: &RequestMatch, bytes: impl Into<Bytes>) -> usize {
        self.command(watches, WatchOrder::Do(StreamAction::Send(bytes.into())))
    }

    /// Ends the open watches whose request matches, after all changes so far. Returns how many.
    pub fn end_watches(&self, watches: &RequestMatch, ending: Ending) -> usize {
        self.command(watches, WatchOrder::Do(StreamAction::End(ending)))
    }

    /// Makes the open watches whose request matches do something, after all changes so far. Returns how many.
    pub fn order(&self, watches: &RequestMatch, action: StreamAction) -> usize {
        self.command(watches, WatchOrder::Do(action))
    }

    /// Ends all open watches as their timeout would.
    pub fn close_watches(&self) -> usize {
        self.end_watches(&RequestMatch::any(), Ending::Close)
    }

    /// Resets all connections (TCP RST).
    pub fn reset_connections(&self) {
        self.shared.each_connection(ConnectionControl::reset);
    }

    /// Tells all connections to end after their open requests: GOAWAY in HTTP/2.
    pub fn go_away(&self) {
        self.shared.each_connection(ConnectionControl::go_away);
    }

    /// Stops listening and drops all connections, as a process that was killed; the objects stay. New connections are
    /// refused until [`Simulator::resume`].
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the stop goes on by itself.
    pub async fn pause(&self) {
        let acceptor = self.acceptor().take();
        if let Some(acceptor) = acceptor {
            acceptor.stop().await;
        }
    }

    /// Listens again at the same address after [`Simulator::pause`]. Does nothing if it listens.
    ///
    /// # Errors
    ///
    /// If the address is taken by now.
    pub fn resume(&self) -> io::Result<()> {
        let mut acceptor = self.acceptor();
        if acceptor.is_none() {
            let socket = if self.address.is_ipv4() {
                TcpSocket::new_v4()?
            } else {
                TcpSocket::new_v6()?
            };
            socket.set_reuseaddr(true)?;
            socket.bind(self.address)?;
            *acceptor = Some(Acceptor::start(Arc::clone(&self.shared), socket.listen(BACKLOG)?));
        }
        Ok(())
    }

    /// Stops listening, drops all connections and waits until they are gone.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the stop goes on by itself.
    pub async fn shutdown(self) {
        self.pause().await;
    }

    fn key(&self, resource: &str) -> Result<ResourceKey, WriteError> {
        self.shared
            .store()
            .named(resource)
            .ok_or_else(|| WriteError::UnknownResource(resource.to_owned()))
    }

    fn merge(
        &self,
        resource: &str,
        (namespace, name): (&str, &str),
        patch: &Value,
        status: bool,
    ) -> Result<Value, WriteError> {
        let key = self.key(resource)?;
        let target = Target {
            key: &key,
            namespace,
            name,
            status,
        };
        let stored = self
            .shared
            .store()
            .patch(target, patch, self.shared.writing(Origin::Host))?;
        read(&stored.object)
    }

    fn command(&self, watches: &RequestMatch, what: WatchOrder) -> usize {
        let after = self.shared.store().versions.current();
        self.shared
            .watches
            .command(watches, &WatchCommand { after, what })
    }

    fn acceptor(&self) -> MutexGuard<'_, Option<Acceptor>> {
        self.acceptor.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn read(object: &[u8]) -> Result<Value, WriteError> {
    serde_json::from_slice(object).map_err(|error| WriteError::Opaque(error.to_string()))
}

impl Acceptor {
    fn start(shared: Arc<Shared>, listener: TcpListener) -> Self {
        let (stop, mut stopped) = watch::channel(false);
        let task = tokio::spawn(async move {
            let mut connections = JoinSet::new();
            loop {
                tokio::select! {
                    biased;
                    // An error means that the handle is gone.
                    _ = stopped.changed() => break,
                    Some(_) = connections.join_next(), if !connections.is_empty() => {}
                    accepted = listener.accept() => match accepted {
                        Ok((stream, _)) => {
                            connections.spawn(serve_connection(Arc::clone(&shared), stream));
                        }
                        // Out of file descriptors, or the peer is gone already: others may succeed.
                        Err(_) => tokio::task::yield_now().await,
                    },
                }
            }
            drop(listener);
            connections.shutdown().await;
        });
        Self { stop, task }
    }

    async fn stop(self) {
        self.stop.send_replace(true);
        // It fails only if the runtime is going down, and then everything ends.
        let _ = self.task.await;
    }
}
