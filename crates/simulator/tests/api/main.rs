//! The simulator as a client sees it, over real HTTP.

mod client;
mod crud;
mod watch;
