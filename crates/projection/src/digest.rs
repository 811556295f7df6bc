//! Keyed digests: what is kept for comparison of what must not be kept.

use std::fmt;

/// The key of all digests of a process: random bytes, drawn once when it starts, never written anywhere.
///
/// One key for the whole process makes the digests of two feeds comparable, and without it a digest says nothing
/// about the value behind it, however short the value is.
#[derive(Clone)]
pub struct DigestKey([u8; 32]);

impl DigestKey {
    /// Takes 32 bytes from a source of cryptographic randomness.
    pub const fn new(random: [u8; 32]) -> Self {
        Self(random)
    }

    pub(crate) fn hasher(&self) -> blake3::Hasher {
        blake3::Hasher::new_keyed(&self.0)
    }
}

impl fmt::Debug for DigestKey {
    /// Shows nothing of the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DigestKey(..)")
    }
}

/// The digest of one withheld value.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct ValueDigest([u8; 32]);

impl ValueDigest {
    pub(crate) fn of(key: &DigestKey, value: &[u8]) -> Self {
        Self(*key.hasher().update(value).finalize().as_bytes())
    }

    /// The digest of two values under one path: a duplicate key.
    pub(crate) fn and(self, key: &DigestKey, next: Self) -> Self {
        Self(*key.hasher().update(&self.0).update(&next.0).finalize().as_bytes())
    }

    pub(crate) const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Debug for ValueDigest {
    /// Shows nothing: equal digests would tell which values are equal.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ValueDigest(..)")
    }
}

/// The digest of a projected state: the object's bytes without the value of `metadata.resourceVersion`, and the paths
/// and digests of what is withheld. Two states of one uid that have equal digests, made with one [`DigestKey`], show
/// a consumer nothing new.
///
/// The comparison is one of bytes: `1` and `1.0` differ.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct StateDigest([u8; 32]);

impl StateDigest {
    pub(crate) fn from_hasher(hasher: &blake3::Hasher) -> Self {
        Self(*hasher.finalize().as_bytes())
    }
}

impl fmt::Debug for StateDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StateDigest(..)")
    }
}
