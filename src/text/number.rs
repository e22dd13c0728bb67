//! Reads JSON numbers by their values: `5.00` and `5` are the same integer (pure).

use serde_json::Number;

/// An integer in exponential notation is not written out with more zeros than this.
const MAX_ZEROS: i128 = 100;

/// The value of a number: its digits, times a power of ten.
#[derive(Debug, PartialEq, Eq)]
pub struct Decimal {
    is_negative: bool,
    /// Without zeros at either end; empty if the value is zero.
    digits: String,
    exponent: i128,
}

impl Decimal {
    pub fn new(number: &Number) -> Decimal {
        let text = number.as_str();
        let unsigned = text.trim_start_matches('-');
        let (mantissa, power) = unsigned.split_once(['e', 'E']).unwrap_or((unsigned, "0"));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let all = format!("{whole}{fraction}");
        let without_end = all.trim_end_matches('0');
        let zeros = all.len() - without_end.len();
        let digits = without_end.trim_start_matches('0').to_owned();
        if digits.is_empty() {
            return Decimal {
                is_negative: false,
                digits,
                exponent: 0,
            };
        }
        Decimal {
            is_negative: text.starts_with('-'),
            digits,
            exponent: power_of_ten(power) + zeros as i128 - fraction.len() as i128,
        }
    }

    /// Returns the value as JSON, in which each value has one notation.
    pub fn to_json(&self) -> String {
        let sign = if self.is_negative { "-" } else { "" };
        match &*self.digits {
            "" => "0".to_owned(),
            digits => format!("{sign}{digits}e{}", self.exponent),
        }
    }

    pub fn is_integer(&self) -> bool {
        self.exponent >= 0
    }

    /// Returns the digits of an integer, with its sign; `None` if it is no integer, or a huge one.
    pub fn to_integer(&self) -> Option<String> {
        if self.digits.is_empty() {
            return Some("0".to_owned());
        }
        if !(0..=MAX_ZEROS).contains(&self.exponent) {
            return None;
        }
        let sign = if self.is_negative { "-" } else { "" };
        let zeros = "0".repeat(self.exponent as usize);
        Some(format!("{sign}{}{zeros}", self.digits))
    }
}

/// Returns the digits of an integer, which is one by its value: in JSON Schema, 5.00 is one, too. `None` if it is no integer, or
/// one in exponential notation that is huge.
pub fn integer_text(number: &Number) -> Option<String> {
    let text = number.as_str();
    if text.contains(['.', 'e', 'E']) {
        return Decimal::new(number).to_integer();
    }
    Some(text.to_owned())
}

/// Reads the exponent of a number. One with more digits than a computer can count to is as good as any other.
fn power_of_ten(text: &str) -> i128 {
    let power = text.parse::<i64>();
    let limit = if text.starts_with('-') {
        i64::MIN
    } else {
        i64::MAX
    };
    power.unwrap_or(limit).into()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;
    use crate::text::table::rows;

    fn value(json: &str) -> Value {
        serde_json::from_str(json).unwrap_or_else(|error| panic!("{json}: {error}"))
    }

    fn decimal(json: &str) -> Decimal {
        match value(json) {
            Value::Number(number) => Decimal::new(&number),
            _ => panic!("{json} is no number"),
        }
    }

    #[test]
    fn a_value_has_one_notation_as_json() {
        for (json, plain) in [
            ("0", "0"),
            ("-0.00e7", "0"),
            ("1", "1e0"),
            ("1.0", "1e0"),
            ("10e-1", "1e0"),
            ("-120", "-12e1"),
            ("0.05", "5e-2"),
        ] {
            assert_eq!(decimal(json).to_json(), plain, "{json}");
        }
    }

    #[test]
    fn a_number_is_an_integer_by_its_value() {
        let long = "1".to_owned() + &"0".repeat(300);
        let table = format!(
            r#"
            0          | yes | 0
            -0         | yes | 0
            0.00e5     | yes | 0
            0e-99999999999999999999 | yes | 0
            5          | yes | 5
            5.0        | yes | 5
            5.00       | yes | 5
            -50.0e-1   | yes | -5
            1e2        | yes | 100
            1.5E+3     | yes | 1500
            12.5e1     | yes | 125
            18446744073709551616 | yes | 18446744073709551616
            1e100      | yes | 1{}
            1e101      | yes | none
            {long}     | yes | none
            1e999999999999999999999999 | yes | none
            5.5        | no  | none
            5e-1       | no  | none
            1e-999999999999999999999999 | no | none
            0.1e0      | no  | none"#,
            "0".repeat(100)
        );
        for [number, is_integer, digits] in rows(&table) {
            let number = decimal(number);
            assert_eq!(number.is_integer(), is_integer == "yes", "{number:?}");
            let found = number.to_integer();
            assert_eq!(found.as_deref().unwrap_or("none"), digits, "{number:?}");
        }
    }

    proptest! {
        #[test]
        fn a_number_is_the_same_wherever_its_decimal_point_is_with_its_exponent(digits in "[1-9][0-9]{0,20}", at in 0..21_usize, zeros in 0..5_usize) {
            let at = at.min(digits.len());
            let (whole, fraction) = digits.split_at(at);
            let zeros = "0".repeat(zeros);
            let moved = format!("{}{whole}.{fraction}0{zeros}e{}", if at == 0 { "0" } else { "" }, fraction.len());
            prop_assert_eq!(decimal(&moved), decimal(&digits));
            prop_assert_eq!(decimal(&moved).to_integer(), Some(digits));
        }
    }
}
