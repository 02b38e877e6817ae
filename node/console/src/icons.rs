//! The console's icons: one path each, on a grid of 24, in the colour of the text beside them.

use std::fmt;

use askama::filters::HtmlSafe;

macro_rules! icons {
    ($($icon:ident = $path:literal;)+) => {
        /// An icon, hidden from screen readers: words always stand beside it.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(super) enum Icon {
            $($icon,)+
        }

        impl Icon {
            const fn path(self) -> &'static str {
                match self {
                    $(Self::$icon => $path,)+
                }
            }
        }
    };
}

icons! {
    Home = "M4 11l8-7 8 7v9h-5v-6H9v6H4z";
    Catalog = "M4 4h7v7H4zM13 4h7v7h-7zM4 13h7v7H4zM13 13h7v7h-7z";
    Apis = "M4 5h16v6H4zM4 13h16v6H4zM7.500 8v.01M7.500 16v.01M12 8h5M12 16h5";
    Finance = "M3 7h15a3 3 0 0 1 3 3v7a3 3 0 0 1-3 3H6a3 3 0 0 1-3-3zM3 7a3 3 0 0 1 3-3h11v3M16.500 13.500v.01";
    Settings = "M4 7h9M19 7h1M4 17h1M11 17h9M13 7a3 3 0 1 0 6 0a3 3 0 1 0-6 0M5 17a3 3 0 1 0 6 0a3 3 0 1 0-6 0";
    Activity = "M3 12h4l3-8 4 16 3-8h4";
    Network = "M12 3v6M12 9l-7 9M12 9l7 9M10.500 3a1.500 1.500 0 1 0 3 0a1.500 1.500 0 1 0-3 0M3.500 19.500a1.500 1.500 0 1 0 3 0a1.500 1.500 0 1 0-3 0M17.500 19.500a1.500 1.500 0 1 0 3 0a1.500 1.500 0 1 0-3 0";
    Help = "M9 9a3 3 0 1 1 4.500 2.600c-1 .6-1.500 1.200-1.500 2.400M12 18v.01M3 12a9 9 0 1 0 18 0a9 9 0 1 0-18 0";
    Search = "M4 11a7 7 0 1 0 14 0a7 7 0 1 0-14 0M16 16l5 5";
    Menu = "M4 6h16M4 12h16M4 18h16";
    Copy = "M9 9h11v11H9zM15 9V4H4v11h5";
    Download = "M12 4v11M7 11l5 5 5-5M4 20h16";
    Alert = "M12 4l9 16H3zM12 10v4M12 17v.01";
    Done = "M5 12l5 5 9-10";
    Todo = "M4 12a8 8 0 1 0 16 0a8 8 0 1 0-16 0";
}

impl fmt::Display for Icon {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            r#"<svg class="icon" viewBox="0 0 24 24" width="20" height="20" aria-hidden="true" focusable="false"><path d="{}"/></svg>"#,
            self.path()
        )
    }
}

/// Nothing of it comes from outside.
impl HtmlSafe for Icon {}
