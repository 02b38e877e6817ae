//! The service that was previewed last: what its owner saw and tried is what is published.
//!
//! Its source is read for the preview. A trial and the publication of the same file take that reading, so that a server
//! which changes meanwhile changes nothing of what the owner said yes to, and large descriptions are read once.

use std::{sync::Arc, time::Duration};

use farthing_control::types::{SamplesFile, ServiceFile};
use parking_lot::Mutex;
use tokio::time::Instant;

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
        match self.kept(&file) {
            Some(service) => Ok(service),
            None => reader.read(ServiceFile { samples: SamplesFile::None, ..file }).await,
        }
    }

    /// Returns the service of a file that is to be published: as it was previewed, or read now.
    ///
    /// # Errors
    /// [`PublishError`] as [`Reader::read`].
    pub async fn to_publish(&self, reader: &Reader, file: &ServiceFile) -> Result<NewService, PublishError> {
        match self.kept(file) {
            Some(service) => Ok(service),
            None => reader.read(file.clone()).await,
        }
    }

    /// Forgets the preview of a file that is published. Where that failed, the next try publishes what was seen, too.
    pub fn published(&self, file: &ServiceFile) {
        drop(self.0.lock().take_if(|kept| kept.file == *file));
    }

    fn kept(&self, file: &ServiceFile) -> Option<NewService> {
        self.0.lock().as_ref().filter(|kept| kept.is_of(file)).map(|kept| kept.service.clone())
    }
}

impl Preview {
    fn is_of(&self, file: &ServiceFile) -> bool {
        self.file == *file && self.read_at.elapsed() < KEPT_FOR
    }
}

#[cfg(test)]
mod tests {
    use farthing_bridge::{description::ApiDescription, report::Report};
    use farthing_protocol::{Usdc, call::ChargePolicy};

    use super::*;
    use crate::new_service::UpstreamSecrets;

    #[test]
    fn what_was_previewed_is_kept_until_it_is_published() {
        let file = ServiceFile { name: "Ports".to_owned(), ..ServiceFile::default() };
        let service = NewService {
            id: None,
            name: file.name.clone(),
            summary: String::new(),
            category: String::new(),
            tags: Vec::new(),
            upstream: String::new(),
            upstream_is_named: true,
            secrets: UpstreamSecrets::default(),
            secrets_are_all: true,
            price: Usdc::ZERO,
            charge_policy: ChargePolicy::Success,
            api: ApiDescription::default(),
            prices: Vec::new(),
            file: file.clone(),
            report: Report::default(),
            samples: None,
        };
        let previews = Previews::default();
        *previews.0.lock() = Some(Preview { file: file.clone(), service, read_at: Instant::now() });
        let other = ServiceFile { name: "Tides".to_owned(), ..file.clone() };
        assert!(previews.kept(&other).is_none());
        // A publication that failed says nothing.
        for _ in 0..2 {
            assert_eq!(previews.kept(&file).map(|service| service.name), Some(file.name.clone()));
        }
        previews.published(&other);
        assert!(previews.kept(&file).is_some());
        previews.published(&file);
        assert!(previews.kept(&file).is_none());
    }
}
