//! A promise for nodes that gossip, and for nodes that do not.

/// Makes two tests of each function that is named: one for nodes that gossip, and one for nodes that do not. Gossip is
/// the fast path and nothing else, so whatever holds with it holds without.
macro_rules! with_and_without_gossip {
    ($($promise:ident),+ $(,)?) => {
        mod with_gossip {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $promise() -> anyhow::Result<()> {
                super::$promise(farthing_tests::nodes::Nodes::new()?).await
            })+
        }
        mod without_gossip {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $promise() -> anyhow::Result<()> {
                super::$promise(farthing_tests::nodes::Nodes::without_gossip()?).await
            })+
        }
    };
}
pub(crate) use with_and_without_gossip;
