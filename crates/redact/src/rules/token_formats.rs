//! Token formats: secrets identified by the vendors' prefixes.

use std::ops::Range;

use crate::text::boundary::find;

/// Condition on a match besides its format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Needs {
    /// No condition.
    Nothing,
    /// Requires a digit: words with hyphens have none.
    Digit,
    /// Requires a digit, a capital and a small letter.
    Mixture,
}

/// Token format.
pub(crate) struct TokenShape {
    /// Literals, one of which every token of the format contains, case-sensitive.
    pub(crate) literals: &'static [&'static str],
    /// Pattern of the format; the text of group 1 stays visible.
    pub(crate) pattern: &'static str,
    /// Additional condition.
    pub(crate) needs: Needs,
    /// True if the last four characters may be shown.
    pub(crate) tail: bool,
    /// Longest secret of the format after its prefix, in bytes.
    pub(crate) most: usize,
}

/// Default maximum, in bytes: tokens of a fixed format are shorter, with room for their formats to grow several times
/// over.
const MOST: usize = 512;

/// Length of a sequence of letters and digits that is no identifier, so that a prefix may follow it directly.
const RUN: usize = 256;

impl TokenShape {
    /// Returns true if a match lies within a long run of letters and digits and is recognized there by its first `keep`
    /// bytes: a prefix with a punctuation mark does not occur by chance in such a run.
    pub(crate) fn is_in_run(line: &[u8], whole: &Range<usize>, keep: usize) -> bool {
        let token = line.get(whole.clone()).unwrap_or_default();
        let prefix = token.get(..keep).unwrap_or_default();
        let is_marked = prefix.iter().any(|byte| !byte.is_ascii_alphanumeric());
        let head = line.get(..whole.start).unwrap_or_default();
        (is_marked || keep > 0 && find(token, b".eyJ").is_some())
            && head.len() >= RUN
            && head.iter().rev().take(RUN).all(u8::is_ascii_alphanumeric)
    }
}

const fn shape(literals: &'static [&'static str], pattern: &'static str) -> TokenShape {
    TokenShape { literals, pattern, needs: Needs::Nothing, tail: true, most: MOST }
}

/// Creates the format of a secret of any length, such as a signed token that carries claims of its issuer.
const fn endless(literals: &'static [&'static str], pattern: &'static str) -> TokenShape {
    TokenShape { most: usize::MAX, ..shape(literals, pattern) }
}

const fn picky(
    literals: &'static [&'static str],
    pattern: &'static str,
    needs: Needs,
) -> TokenShape {
    TokenShape { needs, ..shape(literals, pattern) }
}

const fn silent(literals: &'static [&'static str], pattern: &'static str) -> TokenShape {
    TokenShape { tail: false, ..shape(literals, pattern) }
}

/// All token formats. Lengths are the vendors' or slightly less; longer tokens are accepted, because formats grow.
pub(crate) const SHAPES: &[TokenShape] = &[
    // Model providers and agents.
    shape(&["sk-ant-"], r"(sk-ant-)[A-Za-z0-9_-]{20,}"),
    shape(&["sk-or-"], r"(sk-or-(?:v\d-)?)[0-9a-f]{32,}"),
    shape(&["sk-lf-"], r"(sk-lf-)[0-9a-f-]{32,}"),
    picky(
        &["sk-"],
        r"(sk-)(?:proj|svcacct|admin|None|service|test|live)-[A-Za-z0-9_-]{20,}",
        Needs::Digit,
    ),
    picky(&["sk-"], r"(sk-)[A-Za-z0-9]{20,}[A-Za-z0-9_-]*", Needs::Digit),
    picky(&["sk-"], r"(sk-)[A-Za-z0-9_-]{32,}", Needs::Mixture),
    shape(&["gsk_"], r"(gsk_)[A-Za-z0-9]{40,}"),
    shape(&["xai-"], r"(xai-)[A-Za-z0-9_-]{60,}"),
    shape(&["pplx-"], r"(pplx-)[A-Za-z0-9]{40,}"),
    shape(&["r8_"], r"(r8_)[A-Za-z0-9]{30,}"),
    shape(&["hf_", "api_org_"], r"(hf_|api_org_)[A-Za-z0-9]{30,}"),
    shape(&["lsv2_"], r"(lsv2_(?:pt|sk)_)[0-9a-f]{32}_[0-9a-f]{10}"),
    shape(&["nvapi-"], r"(nvapi-)[A-Za-z0-9_-]{40,}"),
    shape(&["csk-"], r"(csk-)[a-z0-9]{40,}"),
    shape(&["tvly-"], r"(tvly-(?:dev-|prod-)?)[A-Za-z0-9]{20,}"),
    shape(&["tgp_v1_"], r"(tgp_v1_)[A-Za-z0-9_-]{40,}"),
    shape(&["pcsk_"], r"(pcsk_)[A-Za-z0-9_]{40,}"),
    shape(&["jina_"], r"(jina_)[A-Za-z0-9_-]{40,}"),
    shape(&["e2b_"], r"(e2b_)[0-9a-f]{40,}"),
    shape(&["fc-"], r"(fc-)[0-9a-f]{32}"),
    // Cloud providers.
    shape(&["AKIA", "ASIA", "ABIA", "ACCA"], r"(A(?:KIA|SIA|BIA|CCA))[A-Z0-9]{16,}"),
    shape(&["AIza"], r"(AIza)[A-Za-z0-9_-]{30,}"),
    endless(&["ya29."], r"(ya29\.)[A-Za-z0-9_-][A-Za-z0-9_.-]{27,}[A-Za-z0-9_-]"),
    shape(&["1//0"], r"(1//0)[A-Za-z0-9_-]{30,}"),
    shape(&["GOCSPX-"], r"(GOCSPX-)[A-Za-z0-9_-]{24,}"),
    silent(&["Q~"], r"[A-Za-z0-9_~.-]{3}\dQ~[A-Za-z0-9_~.-]{30,33}[A-Za-z0-9_~-]"),
    silent(&["sig="], r"([?&;]sig=)[A-Za-z0-9%+/_-]{20,}={0,2}"),
    shape(&["dop_v1_", "doo_v1_", "dor_v1_"], r"(do[opr]_v1_)[0-9a-f]{60,}"),
    shape(&["HRKU-"], r"(HRKU-)[A-Za-z0-9_-]{32,}"),
    endless(&["fm1_", "fm2_", "fo1_"], r"(fm[12]_|fo1_)[A-Za-z0-9+/_-]{40,}={0,2}"),
    shape(&["atlasv1"], r"[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_-]{60,}"),
    shape(&["pul-"], r"(pul-)[0-9a-f]{40,}"),
    endless(&["hvs.", "hvb.", "hvr."], r"(hv[sbr]\.)[A-Za-z0-9_-]{20,}"),
    shape(&["dapi"], r"(dapi)[0-9a-f]{32}(?:-\d)?"),
    shape(&["sbp_", "sb_secret_"], r"(sbp_|sb_secret_)[A-Za-z0-9_-]{20,}"),
    endless(&["tskey-"], r"(tskey-)[A-Za-z0-9-]{20,}"),
    shape(&["pscale_"], r"(pscale_(?:tkn|pw|oauth)_)[A-Za-z0-9_-]{30,}"),
    // Code hosting and package registries.
    shape(&["ghp_", "gho_", "ghu_", "ghs_", "ghr_"], r"(gh[pousr]_)[A-Za-z0-9_]{30,}"),
    shape(&["github_pat_"], r"(github_pat_)[A-Za-z0-9_]{40,}"),
    shape(
        &[
            "glpat-", "glrt-", "glrtr-", "gldt-", "glft-", "glimt-", "glsoat-", "glcbt-",
            "glagent-", "glptt-", "gltr-", "gloas-", "glffct-",
        ],
        r"(gl(?:pat|rt|rtr|dt|ft|imt|soat|cbt|agent|ptt|tr|oas|ffct)-)[A-Za-z0-9_-]{20,}(?:\.[A-Za-z0-9_-]+)*",
    ),
    shape(&["npm_"], r"(npm_)[A-Za-z0-9]{36,}"),
    endless(&["pypi-"], r"(pypi-)[A-Za-z0-9_-]{50,}"),
    shape(&["rubygems_"], r"(rubygems_)[0-9a-f]{40,}"),
    shape(&["dckr_"], r"(dckr_(?:pat|oat)_)[A-Za-z0-9_-]{24,}"),
    shape(&["bkua_"], r"(bkua_)[0-9a-f]{40,}"),
    shape(&["CCIPAT_"], r"(CCIPAT_)[A-Za-z0-9_]{40,}"),
    endless(&["sntrys_", "sntryu_"], r"(sntry[su]_)[A-Za-z0-9+/_=-]{40,}"),
    // Chat services.
    endless(
        &["xoxa-", "xoxb-", "xoxc-", "xoxd-", "xoxe-", "xoxo-", "xoxp-", "xoxr-", "xoxs-"],
        r"(xoxe\.xox[bp]-|xox[abcdeoprs]-)[A-Za-z0-9-][A-Za-z0-9%-]{9,}",
    ),
    shape(&["xapp-"], r"(xapp-)[A-Za-z0-9-]{20,}"),
    shape(
        &["hooks.slack.com/"],
        r"(hooks\.slack\.com/(?:services|workflows|triggers)/)[A-Za-z0-9+/_-]{20,}",
    ),
    shape(&[":AA"], r"\d{8,10}:AA[A-Za-z0-9_-]{32,}"),
    shape(&["/api/webhooks/"], r"(discord(?:app)?\.com/api/webhooks/\d+/)[A-Za-z0-9_-]{20,}"),
    // Payments, mail, documents, monitoring.
    shape(
        &["sk_live_", "sk_test_", "sk_prod_", "rk_live_", "rk_test_", "rk_prod_"],
        r"((?:sk|rk)_(?:live|test|prod)_)[A-Za-z0-9]{10,}",
    ),
    shape(&["whsec_"], r"(whsec_)[A-Za-z0-9+/]{24,}={0,2}"),
    shape(
        &["shpat_", "shpca_", "shppa_", "shpss_", "shpua_"],
        r"(shp(?:at|ca|pa|ss|ua)_)[0-9a-fA-F]{32,}",
    ),
    shape(&["sq0"], r"(sq0[a-z]{3}-)[A-Za-z0-9_-]{22,}"),
    shape(&["SG."], r"(SG\.)[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}"),
    shape(&["key-"], r"(key-)[0-9a-f]{32}"),
    shape(
        &["-us1", "-us2", "-us3", "-us4", "-us5", "-us6", "-us7", "-us8", "-us9"],
        r"[0-9a-f]{32}-us\d{1,2}",
    ),
    shape(&["lin_"], r"(lin_(?:api|oauth)_)[A-Za-z0-9]{32,}"),
    shape(&["ntn_"], r"(ntn_)[A-Za-z0-9]{40,}"),
    shape(&["figd_", "figo_", "figp_", "figr_", "figu_"], r"(fig[dopru]_)[A-Za-z0-9_-]{30,}"),
    shape(&["PMAK-"], r"(PMAK-)[0-9a-f]{24}-[0-9a-f]{34}"),
    shape(&["ATATT3", "ATCTT3"], r"(AT[AC]TT3)[A-Za-z0-9_+/-]{50,}(?:=[0-9A-F]{8})?"),
    shape(&["ATBB"], r"(ATBB)[A-Za-z0-9]{24,}"),
    shape(&["glsa_"], r"(glsa_)[A-Za-z0-9]{32}_[0-9a-fA-F]{8}"),
    endless(&["glc_"], r"(glc_)[A-Za-z0-9+/]{32,}={0,2}"),
    shape(
        &["NRAK-", "NRJS-", "NRII-", "NRRA-", "NRIQ-", "NRAA-"],
        r"(NR(?:AK|JS|II|RA|IQ|AA)-)[A-Za-z0-9_-]{19,}",
    ),
    shape(&["dt0c01."], r"(dt0c01\.)[A-Z0-9]{24}\.[A-Z0-9]{64}"),
    shape(
        &["dp.pt.", "dp.st.", "dp.ct.", "dp.sa.", "dp.scim.", "dp.audit."],
        r"(dp\.(?:pt|st|ct|sa|scim|audit)\.)(?:[a-z0-9_-]+\.)?[A-Za-z0-9]{40,}",
    ),
    // Keys and signed tokens.
    shape(&["AGE-SECRET-KEY-"], r"(AGE-SECRET-KEY-1)[0-9A-Z]{50,}"),
    endless(&["ops_eyJ"], r"(ops_)eyJ[A-Za-z0-9+/_-]{50,}={0,2}"),
    shape(
        &["A3-"],
        r"(A3-)[A-Z0-9]{6}-(?:[A-Z0-9]{11}|[A-Z0-9]{6}-[A-Z0-9]{5})(?:-[A-Z0-9]{5}){3}",
    ),
    // The two heads are enough to recognize the token: its payload may be longer than a window.
    endless(&["eyJ"], r"(eyJ)[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]+){0,3}"),
    endless(&["eyJ"], r"(eyJ)[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]{4,}){1,3}"),
];
