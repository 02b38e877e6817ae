//! Pictures, and a service to which they are uploaded.

use anyhow::Result;
use farthing_control::types::{Api, ServiceFile, SourceFile, SourceKind};
use farthing_demo_services::image_size;

use crate::{
    upstream::serve,
    world::{PRICE, World},
};

const DESCRIPTION: &str = include_str!("../../demo-services/src/image_size/openapi.json");

/// A PNG of this size, as far as its header, with every byte behind it.
pub fn picture(width: u32, height: u32) -> Vec<u8> {
    let every: Vec<u8> = (0..=255).collect();
    let header = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR";
    [&header[..], &width.to_be_bytes(), &height.to_be_bytes(), &[8_u8, 2, 0, 0, 0], &every[..]].concat()
}

/// Sells `image_size`, whose server runs in the test's own process.
pub async fn sell_image_size(world: &World) -> Result<Api> {
    let source = SourceFile::given(SourceKind::Openapi, DESCRIPTION.to_owned(), "image-size.json".to_owned());
    let file = ServiceFile {
        name: "Image size".to_owned(),
        upstream: serve(image_size::router()).await?,
        source: Some(source),
        writes: true,
        ..ServiceFile::priced(PRICE)
    };
    world.publish(&file).await
}
