//! Pages of `docs/errors/` for a terminal.

use termimad::{MadSkin, crossterm::style::Color};

use crate::printer::Paint;

/// A page laid out for so many columns.
pub fn for_terminal(page: &str, width: usize, paint: Paint) -> String {
    let skin = match paint {
        Paint::Plain => MadSkin::no_style(),
        Paint::Coloured => coloured(),
    };
    // Lines of a paragraph are cut anew for this width, so they must be one line first.
    let text = skin.text(page, Some(width.min(100))).to_string();
    let lines = text.lines().map(str::trim_end);
    let mut laid = lines.collect::<Vec<_>>().join("\n");
    laid.push('\n');
    laid
}

/// Few colours, readable on dark and on light.
fn coloured() -> MadSkin {
    let mut skin = MadSkin::default_dark();
    for header in &mut skin.headers {
        header.align = termimad::Alignment::Left;
        header.set_fg(Color::Cyan);
    }
    skin.inline_code.set_fg(Color::Yellow);
    skin.inline_code.object_style.background_color = None;
    skin.code_block.set_fg(Color::Yellow);
    skin.code_block.compound_style.object_style.background_color = None;
    skin
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pages::PAGES;

    #[test]
    fn every_page_fits_its_width() {
        for (code, page) in PAGES {
            for width in [60, 80] {
                let laid = for_terminal(page, width, Paint::Plain);
                for line in laid.lines() {
                    let columns = crate::render::cell::columns(line);
                    // Code is not cut.
                    assert!(columns <= width || line.len() > width, "{code}: {line}");
                }
            }
        }
    }
}
