//! The image-size service as its clients meet it: real servers, real sockets, the real binary.

#[path = "../common/service.rs"]
mod service;

use farthing_demo_services::image_size;
use serde_json::{Value, json};

use service::{Server, client, get_json};

/// The head of a PNG of 640 × 480, and something behind it.
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x02\x80\0\0\x01\xe0\x08\x02\0\0\0\0\xff";
const FORM: &str = "multipart/form-data; boundary=x7d1";

fn form(part: &str, more: &str) -> Vec<u8> {
    let head = format!(
        "--x7d1\r\ncontent-disposition: form-data; name=\"{part}\"; filename=\"a.png\"\r\ncontent-type: image/png\r\n\r\n"
    );
    [head.as_bytes(), PNG, more.as_bytes(), b"\r\n--x7d1--\r\n"].concat()
}

async fn posted(server: &Server, path: &str, kind: &str, body: &[u8]) -> (u16, Value) {
    let request = client().post(server.url(path)).header("content-type", kind).body(body.to_vec());
    let response = request.send().await.unwrap();
    (response.status().as_u16(), response.json().await.unwrap())
}

#[tokio::test]
async fn an_image_goes_in_and_its_size_comes_out() {
    let server = Server::start(image_size::router()).await;
    let note = "\r\n--x7d1\r\ncontent-disposition: form-data; name=\"note\"\r\n\r\nZürich";
    let mut expected = json!({
        "width": 640, "height": 480, "type": "image/png", "file": "a.png", "note": "Zürich", "bytes": PNG.len(),
    });
    assert_eq!(posted(&server, "/size", FORM, &form("image", note)).await, (200, expected.clone()));
    expected["file"] = Value::Null;
    expected["note"] = Value::Null;
    for kind in ["image/png", "image/gif", "application/octet-stream"] {
        assert_eq!(posted(&server, "/size/raw", kind, PNG).await, (200, expected.clone()), "{kind}");
    }
    server.stop().await;
}

#[tokio::test]
async fn what_is_no_image_is_refused_in_words() {
    let server = Server::start(image_size::router()).await;
    for (path, kind, body, status, told) in [
        ("/size", "application/json", b"{}".to_vec(), 415, "multipart/form-data"),
        ("/size", FORM, form("photo", ""), 400, "`photo`"),
        ("/size", FORM, b"--x7d1--\r\n".to_vec(), 400, "no part `image`"),
        ("/size", FORM, form("image", "")[..40].to_vec(), 400, "cannot be read"),
        ("/size/raw", "text/plain", PNG.to_vec(), 415, "image/gif"),
        ("/size/raw", "image/png", PNG[..23].to_vec(), 422, "PNG"),
        ("/size/raw", "image/png", Vec::new(), 422, "PNG"),
    ] {
        let (answered, problem) = posted(&server, path, kind, &body).await;
        assert_eq!(answered, status, "{problem}");
        assert!(problem["detail"].as_str().unwrap().contains(told), "{problem}");
    }
    server.stop().await;
}

#[tokio::test]
async fn its_description_names_the_file_and_the_note() {
    let server = Server::start(image_size::router()).await;
    let description = get_json(&server.url("/openapi.json")).await;
    let content = &description["paths"]["/size"]["post"]["requestBody"]["content"];
    let members = &content["multipart/form-data"]["schema"]["properties"];
    assert_eq!(members["image"]["format"], "binary");
    assert_eq!(members["note"]["type"], "string");
    server.stop().await;
}

#[test]
fn the_program_names_its_port_answers_and_ends() {
    service::assert_names_its_port_answers_and_ends(env!("CARGO_BIN_EXE_image-size"));
}

#[test]
fn the_program_reports_a_taken_port() {
    service::assert_reports_a_taken_port(env!("CARGO_BIN_EXE_image-size"));
}
