//! Complaints of programs about refused accesses. They are guesses from messages, so they explain a failure and never
//! cause one.

use std::sync::LazyLock;

use regex::Regex;

/// Words by which programs report that the system refused an access, in lower case: names and numbers of errors, and
/// the messages of the system's library.
const ACCESS_ERRORS: [&str; 13] = [
    "eacces",
    "eperm",
    "erofs",
    "exdev",
    "errno 13",
    "errno 1]",
    "errno 30",
    "os error 1)",
    "os error 13",
    "os error 30",
    "operation not permitted",
    "permission denied",
    "read-only file system",
];

/// The same messages in other languages: the service does not know the language of a program.
const TRANSLATED_ERRORS: [&str; 24] = [
    "keine berechtigung",
    "das dateisystem ist nur lesbar",
    "permission non accordée",
    "système de fichiers accessible en lecture seulement",
    "permiso denegado",
    "sistema de ficheros de sólo lectura",
    "permesso negato",
    "file system in sola lettura",
    "permissão negada",
    "sistema de arquivos somente para leitura",
    "toegang geweigerd",
    "bestandssysteem is alleen-lezen",
    "brak dostępu",
    "system plików wyłącznie do odczytu",
    "отказано в доступе",
    "файловая система доступна только для чтения",
    "erişim engellendi",
    "dosya sistemi salt-okunur",
    "权限不够",
    "只读文件系统",
    "許可がありません",
    "読み込み専用ファイルシステムです",
    "허가 거부",
    "읽기 전용 파일 시스템",
];

/// Pattern of all these words.
static ACCESS_ERROR_PATTERN: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let words = ACCESS_ERRORS.iter().chain(&TRANSLATED_ERRORS).map(|word| regex::escape(word));
    Regex::new(&format!("(?i){}", words.collect::<Vec<_>>().join("|"))).ok()
});

/// Bytes at the end of the output in which a path is searched, and greatest length of its line.
const MAX_SEARCHED_BYTES: usize = 64 * 1024;
const MAX_LINE_BYTES: usize = 4096;

/// Characters that enclose a path in messages, each with its counterpart.
const QUOTES: [(char, char); 5] = [('\'', '\''), ('"', '"'), ('`', '`'), ('‘', '’'), ('`', '\'')];

/// Returns true if the output of a failed program complains about refused access.
#[must_use]
pub fn reports_denied_access(stderr: &str) -> bool {
    find_access_error_lines(stderr).next().is_some()
}

/// Returns the absolute path of the first complaint at the end of the output that contains one.
#[must_use]
pub fn find_denied_path(stderr: &str) -> Option<&str> {
    let start = stderr.ceil_char_boundary(stderr.len().saturating_sub(MAX_SEARCHED_BYTES));
    let stderr_tail = stderr.get(start..).unwrap_or_default();
    find_access_error_lines(stderr_tail)
        .filter(|line| line.len() <= MAX_LINE_BYTES)
        .find_map(find_path)
}

fn find_access_error_lines(stderr: &str) -> impl Iterator<Item = &str> {
    stderr
        .lines()
        .filter(|line| ACCESS_ERROR_PATTERN.as_ref().is_some_and(|pattern| pattern.is_match(line)))
}

/// Returns the path of a message: the first in quotation marks, else the last one. A program often begins its message
/// with its own path.
fn find_path(line: &str) -> Option<&str> {
    QUOTES.iter().find_map(|marks| find_quoted_path(line, *marks)).or_else(|| find_last_path(line))
}

fn find_quoted_path(line: &str, (opening, closing): (char, char)) -> Option<&str> {
    for (at, mark) in line.match_indices(opening) {
        let rest = line.get(at + mark.len()..)?;
        if rest.starts_with('/') {
            // Without a closing mark here, no later opening mark has one.
            return rest.split_once(closing).map(|(path, _)| path);
        }
    }
    None
}

fn find_last_path(line: &str) -> Option<&str> {
    let words = line.split([' ', '\t', ',', ';', '(', ')', '=', '\'', '"', '`']);
    let mut paths = words.map(|word| word.trim_end_matches([':', '.'])).filter(|word| {
        // Two slashes are the beginning of an address without its scheme.
        word.starts_with('/') && word.len() > 1 && !word.starts_with("//")
    });
    paths.next_back()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permission_errors_of_shells_and_languages_are_recognized() {
        for (text, expected) in [
            ("sh: 1: cannot create x: Permission denied", true),
            ("Error: EACCES: permission denied, mkdir '/srv/.x'", true),
            ("PermissionError: [Errno 13] Permission denied: 'x'", true),
            ("mv: cannot move: Read-only file system", true),
            ("OSError: [Errno 30] Lese-Fehler: '/etc/x'", true),
            ("Error: EROFS: read-only, open '/etc/x'", true),
            ("chmod: Operation not permitted", true),
            ("failed (os error 1)", true),
            ("failed (os error 17)", false),
            ("[Errno 17] File exists", false),
            ("bash: /etc/x: Keine Berechtigung", true),
            ("touch: impossible: Système de fichiers accessible en lecture seulement", true),
            ("touch: '/etc/x': 权限不够", true),
            ("sh: /etc/x: Отказано в доступе", true),
            ("no such model", false),
        ] {
            assert_eq!(reports_denied_access(text), expected, "{text}");
        }
    }

    #[test]
    fn the_refused_path_is_found_in_the_words_of_ordinary_programs() {
        for (text, expected) in [
            ("sh: 1: cannot create /etc/x: Permission denied", Some("/etc/x")),
            ("/bin/sh: 1: cannot create /etc/x: Permission denied", Some("/etc/x")),
            ("bash: line 1: /etc/my file: Permission denied", Some("/etc/my")),
            ("/usr/bin/touch: cannot touch '/etc/a b': Permission denied", Some("/etc/a b")),
            ("touch: cannot touch ‘/etc/x’: Read-only file system", Some("/etc/x")),
            (
                "PermissionError: [Errno 13] Permission denied: '/dev/shm/psm_1'",
                Some("/dev/shm/psm_1"),
            ),
            (
                "npm error EACCES: permission denied, mkdir '/srv/u/.npm/_cacache'",
                Some("/srv/u/.npm/_cacache"),
            ),
            (
                "failed to initialize build cache at /srv/u/.cache/go-build: mkdir /srv/u/.cache: permission denied",
                Some("/srv/u/.cache"),
            ),
            (
                "error: failed to open: /w/target/debug/.cargo-lock\nCaused by:\n  Permission denied (os error 13)",
                None,
            ),
            (
                "working\nOpenMutex(\"/tmp/lock\"): permission denied\nmv: '/b': Permission denied",
                Some("/tmp/lock"),
            ),
            ("fetch https://host.test/x: permission denied", None),
            ("Permission denied (publickey).", None),
            ("permission denied: '/unclosed", Some("/unclosed")),
            ("'/quiet' is fine", None),
            ("é'/ü/ß': permission denied", Some("/ü/ß")),
        ] {
            assert_eq!(find_denied_path(text), expected, "{text}");
        }
        let unclosed = format!("permission denied {}", "‘/".repeat(2_000_000));
        assert_eq!(find_denied_path(&unclosed), None, "no long line is searched");
        let late = format!("{unclosed}\nmkdir '/late': permission denied");
        assert_eq!(find_denied_path(&late), Some("/late"));
    }
}
