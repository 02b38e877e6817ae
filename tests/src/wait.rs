//! Waiting for conditions, and not for time.

use std::time::Duration;

use anyhow::Result;

/// Looks again and again until `holds`, for as long as anything here may take.
pub async fn eventually(what: &str, mut holds: impl AsyncFnMut() -> Result<bool>) -> Result<()> {
    for _ in 0..1_200 {
        if holds().await? {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    anyhow::bail!("it never came true that {what}")
}
