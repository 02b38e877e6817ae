//! Reasons why a catalog cannot be opened, read or written. A damaged file is none: it is rebuilt.

use std::{path::PathBuf, sync::Arc};

/// The result of every operation.
pub type Result<T, E = CatalogError> = std::result::Result<T, E>;

/// The reason that an operation of the catalog failed.
#[derive(Clone, Debug, thiserror::Error)]
pub enum CatalogError {
    #[error("the catalog's folder {path} cannot be used")]
    Folder { path: PathBuf, source: Arc<std::io::Error> },
    #[error("the catalog is open in another process")]
    InUse,
    #[error("the catalog's storage failed")]
    Storage(#[source] Arc<redb::Error>),
    #[error("the catalog holds an entry that cannot be read ({0}); it is rebuilt at the next start")]
    Damaged(String),
    #[error("the file belongs to another program or another store")]
    Foreign,
    #[error("the search index failed; it is rebuilt at the next start")]
    Index(#[source] Arc<tantivy::TantivyError>),
    #[error("the catalog is closing")]
    Closed,
}

impl CatalogError {
    pub const fn next_step(&self) -> Option<&'static str> {
        match self {
            Self::Folder { .. } => Some("check its permissions and free space"),
            Self::InUse => Some("stop that process first"),
            Self::Storage(_) => Some("free disk space or check the disk, then restart"),
            Self::Damaged(_) | Self::Foreign | Self::Index(_) | Self::Closed => None,
        }
    }

    pub(crate) fn folder(path: &std::path::Path) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Folder { path, source: Arc::new(source) }
    }

    pub(crate) fn storage(error: impl Into<redb::Error>) -> Self {
        match error.into() {
            redb::Error::DatabaseAlreadyOpen => Self::InUse,
            other => Self::Storage(Arc::new(other)),
        }
    }
}

macro_rules! from_redb {
    ($($error:ty),+) => {
        $(impl From<$error> for CatalogError {
            fn from(error: $error) -> Self {
                Self::storage(error)
            }
        })+
    };
}

from_redb!(
    redb::CommitError,
    redb::DatabaseError,
    redb::SetDurabilityError,
    redb::StorageError,
    redb::TableError,
    redb::TransactionError
);

impl From<tantivy::TantivyError> for CatalogError {
    fn from(error: tantivy::TantivyError) -> Self {
        Self::Index(Arc::new(error))
    }
}
