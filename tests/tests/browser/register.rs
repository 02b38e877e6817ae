//! A description is dragged onto the field for files.

use anyhow::{Context, Result, ensure};
use farthing_tests::wait::eventually;
use serde_json::json;

use crate::{keyboard::opened, tides};

#[tokio::test(flavor = "multi_thread")]
async fn a_description_that_is_dropped_on_its_field_is_read() -> Result<()> {
    let Some((browser, _node, _, folder)) = opened().await? else { return Ok(()) };
    let file = folder.path().join("dropped.json");
    std::fs::write(&file, tides::document("Dropped", "http://127.0.0.1:9").to_string())?;
    browser.goto("/panel/apis/new").await?;
    let place = "const field = document.getElementById('file');
        field.scrollIntoView({ block: 'center' });
        const box = field.getBoundingClientRect();
        return [box.x + 24, box.y + box.height / 2]";
    let place = browser.client.execute(place, Vec::new()).await?;
    let path = file.to_str().context("no path")?;
    // What a browser is told while a person drags a file from a folder.
    for step in ["dragEnter", "dragOver", "drop"] {
        let dragged = json!({ "type": step, "x": place[0], "y": place[1],
            "data": { "items": [], "files": [path], "dragOperationsMask": 1 } });
        browser.devtools("Input.dispatchDragEvent", dragged).await?;
    }
    let chosen = "return [...document.getElementById('file').files].map((file) => file.name).join()";
    eventually("the field has the file", async || {
        Ok(browser.client.execute(chosen, Vec::new()).await? == "dropped.json")
    })
    .await?;
    browser.press(".sheet > .actions button.primary").await?;
    browser.wait_for("What your node found").await?;
    let text = browser.text().await?;
    ensure!(text.contains("dropped.json") && text.contains("2 can be offered"), "{text}");
    browser.end().await
}
