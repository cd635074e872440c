//! Pages about errors, at the addresses that errors carry. They are public and the same for every caller.

use std::sync::OnceLock;

use algonius_a2a::problem;
use algonius_actors::model::code::Code;
use algonius_actors::model::failure::Failure;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::header::{
    ACCEPT, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, VARY, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, HeaderName};
use axum::response::{IntoResponse, Response};
use pulldown_cmark::{Event, Parser, Tag, TagEnd, html};

use crate::serve::AppState;
use crate::serve::http::response::ProblemBody;

/// Media type for clients that are no browsers.
pub(in crate::serve) const MARKDOWN: &str = "text/markdown; charset=utf-8";

/// Media type for browsers.
pub(in crate::serve) const HTML: &str = "text/html; charset=utf-8";

/// The pages contain no script, and a page of another site must not frame them.
const SECURITY_POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'";

const STYLE: &str = "body{max-width:44rem;margin:2rem auto;padding:0 1rem;font:1rem/1.5 sans-serif}\
                     code{background:#eee;padding:0 .2em}@media(prefers-color-scheme:dark){\
                     body{background:#111;color:#ddd}code{background:#333}a{color:#8bf}}";

/// Sets the address of the service, with which the addresses of pages in errors begin.
pub fn set_service_url(url: &str) {
    problem::set_service_url(url);
}

/// Texts of the pages under one configuration. Each text is written once and shared by its responses, because anybody
/// may request it.
pub struct ErrorPages {
    index: PageTexts,
    /// Pages in the order of [`Code::ALL`].
    pages: Vec<PageTexts>,
}

/// One page in both formats.
#[derive(Default)]
struct PageTexts {
    html: OnceLock<Bytes>,
    markdown: OnceLock<Bytes>,
}

impl Default for ErrorPages {
    fn default() -> Self {
        let pages = Code::ALL.iter().map(|_| PageTexts::default()).collect();
        Self { index: PageTexts::default(), pages }
    }
}

impl PageTexts {
    /// Returns the text in one format. `markdown` writes the page for the first request.
    fn text(&self, format: PageFormat, title: &str, markdown: impl FnOnce() -> String) -> Bytes {
        let text = match format {
            PageFormat::Html => self.html.get_or_init(|| to_html(title, &markdown()).into()),
            PageFormat::Markdown => self.markdown.get_or_init(|| markdown().into()),
        };
        text.clone()
    }
}

/// Format of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PageFormat {
    Html,
    Markdown,
}

impl PageFormat {
    fn for_request(headers: &HeaderMap) -> Self {
        let accept_values = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
        // Every browser names `text/html`; programs accept anything or name nothing.
        match accept_values.into_iter().any(|value| value.contains("text/html")) {
            true => Self::Html,
            false => Self::Markdown,
        }
    }

    const fn media_type(self) -> &'static str {
        match self {
            Self::Html => HTML,
            Self::Markdown => MARKDOWN,
        }
    }
}

/// Returns the page of a code: HTML for browsers, Markdown for other clients.
pub(in crate::serve) async fn page(
    State(app): State<AppState>,
    Path(code): Path<String>,
    headers: HeaderMap,
) -> Result<Response, ProblemBody> {
    // Links between the pages end with `.md`, and clients that read Markdown follow them as they are.
    let code = code.strip_suffix(".md").unwrap_or(&code);
    let mut pages = Code::ALL.iter().zip(&app.error_pages.pages);
    let (code, texts) = pages
        .find(|(known, _)| known.as_str() == code)
        .ok_or_else(|| ProblemBody(Failure::new(Code::PathUnknown, "there is no such code")))?;
    let format = PageFormat::for_request(&headers);
    Ok(page_response(format, texts.text(format, code.as_str(), || code.page().to_owned())))
}

/// Returns the list of all codes.
pub(in crate::serve) async fn index(State(app): State<AppState>, headers: HeaderMap) -> Response {
    let line = |code: &Code| {
        let (address, category) = (problem::error_page_url(*code), code.category().as_str());
        format!("- [{code}]({address}) ({category}): {}\n", code.hint())
    };
    let markdown = || format!("# Errors\n\n{}", Code::ALL.iter().map(line).collect::<String>());
    let format = PageFormat::for_request(&headers);
    page_response(format, app.error_pages.index.text(format, "Errors", markdown))
}

fn page_response(format: PageFormat, text: Bytes) -> Response {
    let fixed_headers: [(HeaderName, &str); 4] = [
        (CACHE_CONTROL, "public, max-age=3600"),
        (VARY, "accept"),
        (CONTENT_SECURITY_POLICY, SECURITY_POLICY),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ];
    (fixed_headers, [(CONTENT_TYPE, format.media_type())], text).into_response()
}

fn to_html(title: &str, markdown: &str) -> String {
    let mut body = String::new();
    html::push_html(&mut body, parse_with_rewritten_links(markdown).into_iter());
    format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>{title}</title>\
         <meta name=\"viewport\" content=\"width=device-width\"><style>{STYLE}</style>{body}</html>\n"
    )
}

/// Reads Markdown. Links to other pages of errors lead to their addresses here; the text of links to other
/// documents stays without a link, because the service does not serve those.
fn parse_with_rewritten_links(markdown: &str) -> Vec<Event<'_>> {
    let mut retained_link_flags = Vec::new();
    let rewrite_event = |event| match event {
        Event::Start(Tag::Link { link_type, dest_url, title, id }) => {
            let code = dest_url.strip_suffix(".md").filter(|name| !name.contains('/'));
            let is_web = dest_url.starts_with("https://")
                || dest_url.starts_with(&problem::error_page_url_for_code_name(""));
            // The end of a link does not name its target, so the decision is remembered for it.
            retained_link_flags.push(code.is_some() || is_web);
            let address = code.map(|code| problem::error_page_url_for_code_name(code).into());
            let dest_url = address.or(is_web.then_some(dest_url))?;
            Some(Event::Start(Tag::Link { link_type, dest_url, title, id }))
        }
        Event::End(TagEnd::Link) if !retained_link_flags.pop().unwrap_or_default() => None,
        event => Some(event),
    };
    Parser::new(markdown).filter_map(rewrite_event).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_error_page_is_html_without_broken_links() {
        for code in Code::ALL {
            let page = to_html(code.as_str(), code.page());
            assert!(page.contains(&format!("<h1>{code}</h1>")), "{page}");
            assert_eq!(page.matches("<a ").count(), page.matches("</a>").count(), "{page}");
            let links = page.split("href=\"").skip(1).filter_map(|rest| rest.split('"').next());
            for link in links {
                let code = link.strip_prefix(problem::ERROR_PAGES_PATH).unwrap_or_default();
                let is_page = Code::ALL.iter().any(|known| known.as_str() == code);
                assert!(is_page || link.starts_with("https://"), "{code}: {link}");
            }
        }
    }

    #[test]
    fn a_link_to_an_unserved_document_becomes_text() {
        let page = to_html("x", "[a](../b.md) [c](queue-full.md)");
        assert!(page.contains("<p>a <a href=\"/errors/queue-full\">c</a></p>"), "{page}");
    }
}
