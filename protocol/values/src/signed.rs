//! [`Signed`] documents and [`Verified`] values: the only way to a signer's address.
//!
//! A [`Signed<T>`] keeps the exact bytes its owner signed, so a node can pass on a document of a newer
//! version without breaking its signature. A [`Verified<T>`] exists only after a check; functions that need
//! the proof take the type, and what was not checked does not compile.

use std::{marker::PhantomData, ops::Deref};

use minicbor::{CborLen, Decode, Encode};

use crate::{Address, Hash, SecretKey, Signature, keccak256, signature::SignatureError, wire};

/// A document that nodes publish about themselves: what it is called when signed, and who must have signed it.
pub trait Document: Encode<()> + for<'b> Decode<'b, ()> {
    /// Separates this kind of document from everything else the key may sign.
    const DOMAIN: &'static str;
    /// The most the document's bytes may be.
    const BYTES_MAX: usize;

    /// Returns the address whose document this claims to be.
    fn signer(&self) -> Address;

    /// The document's own rules, beyond its signature.
    ///
    /// # Errors
    /// The rule that is broken, in words.
    fn validate(&self) -> Result<(), InvalidDocument>;
}

/// A document with its signature, as it travels. Nothing about it is proven yet.
#[derive(Encode, Decode, CborLen, PartialEq, Eq)]
#[cbor(map)]
pub struct Signed<T> {
    #[cbor(n(0), with = "minicbor::bytes")]
    bytes: Vec<u8>,
    #[n(1)]
    signature: Signature,
    #[cbor(skip)]
    document: PhantomData<fn() -> T>,
}

impl<T> Clone for Signed<T> {
    fn clone(&self) -> Self {
        Self { bytes: self.bytes.clone(), signature: self.signature, document: PhantomData }
    }
}

impl<T> std::fmt::Debug for Signed<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Signed({} bytes)", self.bytes.len())
    }
}

/// The reason that a signed document is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DocumentError {
    #[error("the document has {bytes} bytes, at most {bytes_max} are allowed")]
    TooLarge { bytes: usize, bytes_max: usize },
    #[error("the document cannot be read: {0}")]
    Malformed(String),
    #[error(transparent)]
    Signature(#[from] SignatureError),
    #[error(transparent)]
    Invalid(#[from] InvalidDocument),
}

impl DocumentError {
    /// Tells whether the document claims to be, or to own, what is another's: no node passes on such a one by mistake.
    pub const fn is_forgery(&self) -> bool {
        match self {
            Self::Signature(_) => true,
            Self::Invalid(broken) => broken.is_forged,
            Self::TooLarge { .. } | Self::Malformed(_) => false,
        }
    }
}

/// A rule of the document that is broken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {problem}")]
pub struct InvalidDocument {
    pub field: &'static str,
    pub problem: String,
    /// The document claims what is another's.
    pub is_forged: bool,
}

impl InvalidDocument {
    pub(crate) fn new(field: &'static str, problem: impl Into<String>) -> Self {
        Self { field, problem: problem.into(), is_forged: false }
    }

    pub(crate) fn forged(field: &'static str, problem: impl Into<String>) -> Self {
        Self { is_forged: true, ..Self::new(field, problem) }
    }
}

impl<T: Document> Signed<T> {
    /// Signs `document`. Its owner must be the key's address.
    ///
    /// # Errors
    /// [`DocumentError`] when the document breaks its own rules, is too large, or names another owner.
    pub fn sign(document: &T, key: &SecretKey) -> Result<Self, DocumentError> {
        document.validate()?;
        let expected = document.signer();
        if key.address() != expected {
            return Err(SignatureError::WrongSigner { signer: key.address(), expected }.into());
        }
        let bytes = wire::encode(document);
        check_size(&bytes, T::BYTES_MAX)?;
        let signature = key.sign(&digest::<T>(&bytes));
        Ok(Self { bytes, signature, document: PhantomData })
    }

    /// Returns what the document says while nothing is proven: its size, form and rules are checked, its signature is
    /// not. For checks that are cheaper than a signature and come before it.
    pub fn claimed(&self) -> Result<T, DocumentError> {
        check_size(&self.bytes, T::BYTES_MAX)?;
        let value: T = wire::decode(&self.bytes).map_err(|e| DocumentError::Malformed(e.to_string()))?;
        value.validate()?;
        Ok(value)
    }

    /// Checks size, form, rules and signature, cheapest first.
    pub fn verify(self) -> Result<Verified<T>, DocumentError> {
        let value = self.claimed()?;
        let expected = value.signer();
        let signer = self.signature.signer(&digest::<T>(&self.bytes))?;
        if signer != expected {
            return Err(SignatureError::WrongSigner { signer, expected }.into());
        }
        Ok(Verified { value, signer, proof: Proof::Document(self.bytes, self.signature) })
    }

    /// Returns whether the signed bytes can be a document at all, even of a version that this one cannot read. Proves
    /// nothing else.
    pub fn has_form(&self) -> bool {
        wire::is_map(&self.bytes)
    }

    /// Identifies this exact version of the document: the hash of the signed bytes.
    pub fn content_hash(&self) -> Hash {
        keccak256(&[&self.bytes])
    }
}

fn check_size(bytes: &[u8], bytes_max: usize) -> Result<(), DocumentError> {
    if bytes.len() > bytes_max {
        return Err(DocumentError::TooLarge { bytes: bytes.len(), bytes_max });
    }
    Ok(())
}

fn digest<T: Document>(bytes: &[u8]) -> Hash {
    keccak256(&[b"\x19Farthing signed document:\0", T::DOMAIN.as_bytes(), b"\0", bytes])
}

/// A value whose signature was checked. Made only in this module; reads like the value itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verified<T> {
    value: T,
    signer: Address,
    proof: Proof,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Proof {
    Document(Vec<u8>, Signature),
    Digest(Signature),
}

impl<T> Verified<T> {
    /// Proves that `expected` signed `digest`, which the caller computed from `value`; for EIP-712 data,
    /// whose digest depends on chain and contract.
    pub(crate) fn check(
        value: T,
        digest: &Hash,
        signature: Signature,
        expected: Address,
    ) -> Result<Self, SignatureError> {
        let signer = signature.signer(digest)?;
        if signer != expected {
            return Err(SignatureError::WrongSigner { signer, expected });
        }
        Ok(Self { value, signer, proof: Proof::Digest(signature) })
    }

    pub const fn signer(&self) -> Address {
        self.signer
    }

    pub const fn signature(&self) -> &Signature {
        match &self.proof {
            Proof::Document(_, signature) | Proof::Digest(signature) => signature,
        }
    }

    #[must_use]
    pub fn into_inner(self) -> T {
        self.value
    }
}

impl<T: Document> Verified<T> {
    /// The document as it travels, bytes untouched.
    pub fn to_signed(&self) -> Signed<T> {
        match &self.proof {
            Proof::Document(bytes, signature) => {
                Signed { bytes: bytes.clone(), signature: *signature, document: PhantomData }
            }
            Proof::Digest(_) => unreachable!("documents are verified by `Signed::verify` alone"),
        }
    }

    /// The same document in as few bytes as it travels in, for keeping many.
    pub fn pack(&self) -> Packed<T> {
        Packed { bytes: wire::encode(&self.to_signed()).into(), document: PhantomData }
    }
}

/// A verified document as it travels. Made of a [`Verified`] alone, so that reading it again needs no other check of
/// its signature.
pub struct Packed<T> {
    bytes: Box<[u8]>,
    document: PhantomData<fn() -> T>,
}

impl<T> std::fmt::Debug for Packed<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Packed({} bytes)", self.bytes.len())
    }
}

impl<T: Document> Packed<T> {
    /// The bytes of the [`Signed`] document.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns what was packed.
    pub fn unpack(&self) -> Verified<T> {
        let Signed { bytes, signature, .. }: Signed<T> =
            wire::decode(&self.bytes).expect("these bytes were written by `pack`");
        let value: T = wire::decode(&bytes).expect("the document was read when it was verified");
        let signer = value.signer();
        Verified { value, signer, proof: Proof::Document(bytes, signature) }
    }
}

impl<T> Deref for Verified<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}
