//! Token formats: secrets identified by the vendors' prefixes.

use std::ops::Range;

use crate::text::boundary::find_bytes;

/// Condition on a match besides its format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MatchCondition {
    /// No condition.
    Unconditional,
    /// Requires a digit: words with hyphens have none.
    Digit,
    /// Requires a digit, a capital and a small letter.
    MixedCaseAndDigit,
}

/// Token format.
pub(crate) struct TokenFormat {
    /// Literals, one of which every token of the format contains, case-sensitive.
    pub(crate) literals: &'static [&'static str],
    /// Pattern of the format; the text of group 1 stays visible.
    pub(crate) pattern: &'static str,
    /// Additional condition.
    pub(crate) condition: MatchCondition,
    /// True if the last four characters may be shown.
    pub(crate) shows_tail: bool,
    /// Longest secret of the format after its prefix, in bytes.
    pub(crate) max_secret_bytes: usize,
}

/// Default maximum, in bytes: tokens of a fixed format are shorter, with room for their formats to grow several times
/// over.
const DEFAULT_MAX_SECRET_BYTES: usize = 512;

/// Length of a sequence of letters and digits that is no identifier, so that a prefix may follow it directly.
const MIN_RUN_BYTES: usize = 256;

impl TokenFormat {
    /// Returns true if a match lies within a long run of letters and digits and is recognized there by its first
    /// `prefix_bytes`: a prefix with a punctuation mark does not occur by chance in such a run.
    pub(crate) fn is_recognizable_in_run(
        line: &[u8],
        match_range: &Range<usize>,
        prefix_bytes: usize,
    ) -> bool {
        let token = line.get(match_range.clone()).unwrap_or_default();
        let prefix = token.get(..prefix_bytes).unwrap_or_default();
        let has_punctuation = prefix.iter().any(|byte| !byte.is_ascii_alphanumeric());
        let head = line.get(..match_range.start).unwrap_or_default();
        (has_punctuation || prefix_bytes > 0 && find_bytes(token, b".eyJ").is_some())
            && head.len() >= MIN_RUN_BYTES
            && head.iter().rev().take(MIN_RUN_BYTES).all(u8::is_ascii_alphanumeric)
    }
}

const fn bounded_format(literals: &'static [&'static str], pattern: &'static str) -> TokenFormat {
    TokenFormat {
        literals,
        pattern,
        condition: MatchCondition::Unconditional,
        shows_tail: true,
        max_secret_bytes: DEFAULT_MAX_SECRET_BYTES,
    }
}

/// Creates the format of a secret of any length, such as a signed token that carries claims of its issuer.
const fn unbounded_format(literals: &'static [&'static str], pattern: &'static str) -> TokenFormat {
    TokenFormat { max_secret_bytes: usize::MAX, ..bounded_format(literals, pattern) }
}

const fn conditional_format(
    literals: &'static [&'static str],
    pattern: &'static str,
    condition: MatchCondition,
) -> TokenFormat {
    TokenFormat { condition, ..bounded_format(literals, pattern) }
}

const fn format_without_tail(
    literals: &'static [&'static str],
    pattern: &'static str,
) -> TokenFormat {
    TokenFormat { shows_tail: false, ..bounded_format(literals, pattern) }
}

/// All token formats. Lengths are the vendors' or slightly less; longer tokens are accepted, because formats grow.
pub(crate) const TOKEN_FORMATS: &[TokenFormat] = &[
    // Model providers and agents.
    bounded_format(&["sk-ant-"], r"(sk-ant-)[A-Za-z0-9_-]{20,}"),
    bounded_format(&["sk-or-"], r"(sk-or-(?:v\d-)?)[0-9a-f]{32,}"),
    bounded_format(&["sk-lf-"], r"(sk-lf-)[0-9a-f-]{32,}"),
    conditional_format(
        &["sk-"],
        r"(sk-)(?:proj|svcacct|admin|None|service|test|live)-[A-Za-z0-9_-]{20,}",
        MatchCondition::Digit,
    ),
    conditional_format(&["sk-"], r"(sk-)[A-Za-z0-9]{20,}[A-Za-z0-9_-]*", MatchCondition::Digit),
    conditional_format(&["sk-"], r"(sk-)[A-Za-z0-9_-]{32,}", MatchCondition::MixedCaseAndDigit),
    bounded_format(&["gsk_"], r"(gsk_)[A-Za-z0-9]{40,}"),
    bounded_format(&["xai-"], r"(xai-)[A-Za-z0-9_-]{60,}"),
    bounded_format(&["pplx-"], r"(pplx-)[A-Za-z0-9]{40,}"),
    bounded_format(&["r8_"], r"(r8_)[A-Za-z0-9]{30,}"),
    bounded_format(&["hf_", "api_org_"], r"(hf_|api_org_)[A-Za-z0-9]{30,}"),
    bounded_format(&["lsv2_"], r"(lsv2_(?:pt|sk)_)[0-9a-f]{32}_[0-9a-f]{10}"),
    bounded_format(&["nvapi-"], r"(nvapi-)[A-Za-z0-9_-]{40,}"),
    bounded_format(&["csk-"], r"(csk-)[a-z0-9]{40,}"),
    bounded_format(&["tvly-"], r"(tvly-(?:dev-|prod-)?)[A-Za-z0-9]{20,}"),
    bounded_format(&["tgp_v1_"], r"(tgp_v1_)[A-Za-z0-9_-]{40,}"),
    bounded_format(&["pcsk_"], r"(pcsk_)[A-Za-z0-9_]{40,}"),
    bounded_format(&["jina_"], r"(jina_)[A-Za-z0-9_-]{40,}"),
    bounded_format(&["e2b_"], r"(e2b_)[0-9a-f]{40,}"),
    bounded_format(&["fc-"], r"(fc-)[0-9a-f]{32}"),
    // Cloud providers.
    bounded_format(&["AKIA", "ASIA", "ABIA", "ACCA"], r"(A(?:KIA|SIA|BIA|CCA))[A-Z0-9]{16,}"),
    bounded_format(&["AIza"], r"(AIza)[A-Za-z0-9_-]{30,}"),
    unbounded_format(&["ya29."], r"(ya29\.)[A-Za-z0-9_-][A-Za-z0-9_.-]{27,}[A-Za-z0-9_-]"),
    bounded_format(&["1//0"], r"(1//0)[A-Za-z0-9_-]{30,}"),
    bounded_format(&["GOCSPX-"], r"(GOCSPX-)[A-Za-z0-9_-]{24,}"),
    format_without_tail(&["Q~"], r"[A-Za-z0-9_~.-]{3}\dQ~[A-Za-z0-9_~.-]{30,33}[A-Za-z0-9_~-]"),
    format_without_tail(&["sig="], r"([?&;]sig=)[A-Za-z0-9%+/_-]{20,}={0,2}"),
    bounded_format(&["dop_v1_", "doo_v1_", "dor_v1_"], r"(do[opr]_v1_)[0-9a-f]{60,}"),
    bounded_format(&["HRKU-"], r"(HRKU-)[A-Za-z0-9_-]{32,}"),
    unbounded_format(&["fm1_", "fm2_", "fo1_"], r"(fm[12]_|fo1_)[A-Za-z0-9+/_-]{40,}={0,2}"),
    bounded_format(&["atlasv1"], r"[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_-]{60,}"),
    bounded_format(&["pul-"], r"(pul-)[0-9a-f]{40,}"),
    unbounded_format(&["hvs.", "hvb.", "hvr."], r"(hv[sbr]\.)[A-Za-z0-9_-]{20,}"),
    bounded_format(&["dapi"], r"(dapi)[0-9a-f]{32}(?:-\d)?"),
    bounded_format(&["sbp_", "sb_secret_"], r"(sbp_|sb_secret_)[A-Za-z0-9_-]{20,}"),
    unbounded_format(&["tskey-"], r"(tskey-)[A-Za-z0-9-]{20,}"),
    bounded_format(&["pscale_"], r"(pscale_(?:tkn|pw|oauth)_)[A-Za-z0-9_-]{30,}"),
    // Code hosting and package registries.
    bounded_format(&["ghp_", "gho_", "ghu_", "ghs_", "ghr_"], r"(gh[pousr]_)[A-Za-z0-9_]{30,}"),
    bounded_format(&["github_pat_"], r"(github_pat_)[A-Za-z0-9_]{40,}"),
    bounded_format(
        &[
            "glpat-", "glrt-", "glrtr-", "gldt-", "glft-", "glimt-", "glsoat-", "glcbt-",
            "glagent-", "glptt-", "gltr-", "gloas-", "glffct-",
        ],
        r"(gl(?:pat|rt|rtr|dt|ft|imt|soat|cbt|agent|ptt|tr|oas|ffct)-)[A-Za-z0-9_-]{20,}(?:\.[A-Za-z0-9_-]+)*",
    ),
    bounded_format(&["npm_"], r"(npm_)[A-Za-z0-9]{36,}"),
    unbounded_format(&["pypi-"], r"(pypi-)[A-Za-z0-9_-]{50,}"),
    bounded_format(&["rubygems_"], r"(rubygems_)[0-9a-f]{40,}"),
    bounded_format(&["dckr_"], r"(dckr_(?:pat|oat)_)[A-Za-z0-9_-]{24,}"),
    bounded_format(&["bkua_"], r"(bkua_)[0-9a-f]{40,}"),
    bounded_format(&["CCIPAT_"], r"(CCIPAT_)[A-Za-z0-9_]{40,}"),
    unbounded_format(&["sntrys_", "sntryu_"], r"(sntry[su]_)[A-Za-z0-9+/_=-]{40,}"),
    // Chat services.
    unbounded_format(
        &["xoxa-", "xoxb-", "xoxc-", "xoxd-", "xoxe-", "xoxo-", "xoxp-", "xoxr-", "xoxs-"],
        r"(xoxe\.xox[bp]-|xox[abcdeoprs]-)[A-Za-z0-9-][A-Za-z0-9%-]{9,}",
    ),
    bounded_format(&["xapp-"], r"(xapp-)[A-Za-z0-9-]{20,}"),
    bounded_format(
        &["hooks.slack.com/"],
        r"(hooks\.slack\.com/(?:services|workflows|triggers)/)[A-Za-z0-9+/_-]{20,}",
    ),
    bounded_format(&[":AA"], r"\d{8,10}:AA[A-Za-z0-9_-]{32,}"),
    bounded_format(
        &["/api/webhooks/"],
        r"(discord(?:app)?\.com/api/webhooks/\d+/)[A-Za-z0-9_-]{20,}",
    ),
    // Payments, mail, documents, monitoring.
    bounded_format(
        &["sk_live_", "sk_test_", "sk_prod_", "rk_live_", "rk_test_", "rk_prod_"],
        r"((?:sk|rk)_(?:live|test|prod)_)[A-Za-z0-9]{10,}",
    ),
    bounded_format(&["whsec_"], r"(whsec_)[A-Za-z0-9+/]{24,}={0,2}"),
    bounded_format(
        &["shpat_", "shpca_", "shppa_", "shpss_", "shpua_"],
        r"(shp(?:at|ca|pa|ss|ua)_)[0-9a-fA-F]{32,}",
    ),
    bounded_format(&["sq0"], r"(sq0[a-z]{3}-)[A-Za-z0-9_-]{22,}"),
    bounded_format(&["SG."], r"(SG\.)[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}"),
    bounded_format(&["key-"], r"(key-)[0-9a-f]{32}"),
    bounded_format(
        &["-us1", "-us2", "-us3", "-us4", "-us5", "-us6", "-us7", "-us8", "-us9"],
        r"[0-9a-f]{32}-us\d{1,2}",
    ),
    bounded_format(&["lin_"], r"(lin_(?:api|oauth)_)[A-Za-z0-9]{32,}"),
    bounded_format(&["ntn_"], r"(ntn_)[A-Za-z0-9]{40,}"),
    bounded_format(
        &["figd_", "figo_", "figp_", "figr_", "figu_"],
        r"(fig[dopru]_)[A-Za-z0-9_-]{30,}",
    ),
    bounded_format(&["PMAK-"], r"(PMAK-)[0-9a-f]{24}-[0-9a-f]{34}"),
    bounded_format(&["ATATT3", "ATCTT3"], r"(AT[AC]TT3)[A-Za-z0-9_+/-]{50,}(?:=[0-9A-F]{8})?"),
    bounded_format(&["ATBB"], r"(ATBB)[A-Za-z0-9]{24,}"),
    bounded_format(&["glsa_"], r"(glsa_)[A-Za-z0-9]{32}_[0-9a-fA-F]{8}"),
    unbounded_format(&["glc_"], r"(glc_)[A-Za-z0-9+/]{32,}={0,2}"),
    bounded_format(
        &["NRAK-", "NRJS-", "NRII-", "NRRA-", "NRIQ-", "NRAA-"],
        r"(NR(?:AK|JS|II|RA|IQ|AA)-)[A-Za-z0-9_-]{19,}",
    ),
    bounded_format(&["dt0c01."], r"(dt0c01\.)[A-Z0-9]{24}\.[A-Z0-9]{64}"),
    bounded_format(
        &["dp.pt.", "dp.st.", "dp.ct.", "dp.sa.", "dp.scim.", "dp.audit."],
        r"(dp\.(?:pt|st|ct|sa|scim|audit)\.)(?:[a-z0-9_-]+\.)?[A-Za-z0-9]{40,}",
    ),
    // Keys and signed tokens.
    bounded_format(&["AGE-SECRET-KEY-"], r"(AGE-SECRET-KEY-1)[0-9A-Z]{50,}"),
    unbounded_format(&["ops_eyJ"], r"(ops_)eyJ[A-Za-z0-9+/_-]{50,}={0,2}"),
    bounded_format(
        &["A3-"],
        r"(A3-)[A-Z0-9]{6}-(?:[A-Z0-9]{11}|[A-Z0-9]{6}-[A-Z0-9]{5})(?:-[A-Z0-9]{5}){3}",
    ),
    // The two heads are enough to recognize the token: its payload may be longer than a window.
    unbounded_format(
        &["eyJ"],
        r"(eyJ)[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]+){0,3}",
    ),
    unbounded_format(
        &["eyJ"],
        r"(eyJ)[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]{4,}){1,3}",
    ),
];
