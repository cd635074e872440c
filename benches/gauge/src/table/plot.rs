//! Plot of a curve in SVG.

use std::fmt::Write as _;

use algonius_gauge::page::format_number;
use algonius_gauge::report::Curve;

/// Positions of the axes, in units of the image.
const LEFT: f64 = 64.0;
const RIGHT: f64 = 500.0;
const TOP: f64 = 34.0;
const BOTTOM: f64 = 240.0;

/// Ratio of the last value to the first from which the axis is logarithmic.
const LOG_SCALE_RATIO: f64 = 30.0;

/// Draws the curve, from zero upwards.
pub(crate) fn svg(curve: &Curve) -> String {
    let mut picture = "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 520 290\" \
        font-family=\"sans-serif\" font-size=\"12\">\n\
        <rect width=\"520\" height=\"290\" fill=\"#fff\"/>\n"
        .to_owned();
    let max_value = curve.points.iter().map(|point| point.1).fold(0.0, f64::max);
    let step = grid_step(max_value);
    let axis_max = (max_value / step).ceil().max(1.0) * step;
    let y_of = |value: f64| BOTTOM - (value / axis_max) * (BOTTOM - TOP);
    let mut grid_value = 0.0;
    while grid_value <= axis_max + step / 2.0 {
        let y = y_of(grid_value);
        _ = writeln!(
            picture,
            "<path d=\"M{LEFT} {y:.1}H{RIGHT}\" stroke=\"#ddd\"/>\n{}",
            text_element((LEFT - 6.0, y + 4.0), "end", &format_number(grid_value))
        );
        grid_value += step;
    }
    let positions: Vec<_> = curve.points.iter().map(|point| x_of(point.0, curve)).collect();
    let mut path = String::new();
    for (x, (x_value, y_value)) in positions.iter().zip(&curve.points) {
        let (y, command) = (y_of(*y_value), if path.is_empty() { 'M' } else { 'L' });
        _ = write!(path, "{command}{x:.1} {y:.1}");
        _ = writeln!(picture, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" fill=\"#26c\"/>");
        _ = writeln!(
            picture,
            "{}",
            text_element((*x, BOTTOM + 18.0), "middle", &axis_label(*x_value))
        );
    }
    _ = writeln!(picture, "<path d=\"{path}\" fill=\"none\" stroke=\"#26c\" stroke-width=\"2\"/>");
    let middle = f64::midpoint(LEFT, RIGHT);
    _ = writeln!(picture, "{}", text_element((middle, BOTTOM + 40.0), "middle", &curve.x_label));
    _ = writeln!(picture, "{}", text_element((LEFT, TOP - 16.0), "start", &curve.y_label));
    picture + "</svg>\n"
}

/// Returns the horizontal position of a value.
fn x_of(value: f64, curve: &Curve) -> f64 {
    let x_value = |point: Option<&(f64, f64)>| point.map_or(0.0, |point| point.0);
    let (first, last) = (x_value(curve.points.first()), x_value(curve.points.last()));
    let fraction = match first > 0.0 && last / first >= LOG_SCALE_RATIO {
        true => (value / first).ln() / (last / first).ln(),
        false => (value - first) / (last - first).max(f64::MIN_POSITIVE),
    };
    LEFT + 16.0 + fraction * (RIGHT - LEFT - 32.0)
}

/// Returns the distance of some three to six grid lines: 1, 2 or 5 times a power of ten.
fn grid_step(max_value: f64) -> f64 {
    let power = 10_f64.powf((max_value.max(1e-9) / 4.0).log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0].map(|times| times * power);
    steps.into_iter().find(|step| max_value / step <= 5.0).unwrap_or(power)
}

fn text_element((x, y): (f64, f64), anchor: &str, text: &str) -> String {
    format!("<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{text}</text>")
}

/// Formats a number for an axis: `10k`.
fn axis_label(value: f64) -> String {
    match value {
        1e6.. => format_number(value / 1e6) + "M",
        1e3.. => format_number(value / 1e3) + "k",
        _ => format_number(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curve_starts_at_zero_with_its_points_in_order() {
        let curve = Curve {
            name: "x".to_owned(),
            x_label: "agents".to_owned(),
            y_label: "memory, MB".to_owned(),
            points: vec![(1.0, 0.0), (100.0, 5.0), (10_000.0, 10.0)],
        };
        let picture = svg(&curve);
        // One line per two units, and three points at equal ratios.
        assert_eq!(picture.matches("stroke=\"#ddd\"").count(), 6, "{picture}");
        assert!(picture.contains("d=\"M80.0 240.0L282.0 137.0L484.0 34.0\""), "{picture}");
        assert!(picture.contains(">10k<") && picture.contains(">agents<"), "{picture}");
    }
}
