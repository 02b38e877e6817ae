//! The service that was previewed last: what its owner saw and tried is what is published.
//!
//! Its source is read for the preview. A trial and the publication of the same file take that reading, so that a server
//! which changes meanwhile changes nothing of what the owner said yes to, and large descriptions are read once.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use farthing_control::types::{SamplesFile, ServiceFile};
use parking_lot::Mutex;

use super::{
    new_service::NewService,
    publish::{PublishError, Reader},
};

/// Enough to look at a preview and to decide; the file is read again later on.
const KEPT_FOR: Duration = Duration::from_secs(600);

/// The newest preview of this node. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Previews(Arc<Mutex<Option<Preview>>>);

struct Preview {
    file: ServiceFile,
    service: NewService,
    read_at: Instant,
}

farthing_os::hidden!(Preview);

impl Previews {
    /// Reads the file for a preview, and keeps what it says.
    ///
    /// # Errors
    /// [`PublishError`] as [`Reader::read`].
    pub async fn read(&self, reader: &Reader, file: ServiceFile) -> Result<NewService, PublishError> {
        let service = reader.read(file.clone()).await?;
        let kept = Preview { file, service: service.clone(), read_at: Instant::now() };
        *self.0.lock() = Some(kept);
        Ok(service)
    }

    /// Returns the service of a file whose server is to be tried. That needs no samples, which may be calls themselves.
    ///
    /// # Errors
    /// [`PublishError`] as [`Reader::read`].
    pub async fn to_try(&self, reader: &Reader, file: ServiceFile) -> Result<NewService, PublishError> {
        let kept = self.0.lock().as_ref().filter(|kept| kept.is_of(&file)).map(|kept| kept.service.clone());
        match kept {
            Some(service) => Ok(service),
            None => reader.read(ServiceFile { samples: SamplesFile::None, ..file }).await,
        }
    }

    /// Returns the service of a file that is published: as it was previewed, or read now.
    ///
    /// # Errors
    /// [`PublishError`] as [`Reader::read`].
    pub async fn to_publish(&self, reader: &Reader, file: ServiceFile) -> Result<NewService, PublishError> {
        let kept = self.0.lock().take_if(|kept| kept.is_of(&file));
        match kept {
            Some(kept) => Ok(kept.service),
            None => reader.read(file).await,
        }
    }
}

impl Preview {
    fn is_of(&self, file: &ServiceFile) -> bool {
        self.file == *file && self.read_at.elapsed() < KEPT_FOR
    }
}
