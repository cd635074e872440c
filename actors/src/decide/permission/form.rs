//! Values of a form: a check against the flat JSON schema of an agent.
//!
//! A flat schema is an object whose fields are texts, numbers, whole numbers, truth values, or lists of offered texts.
//! Keywords such as `format` and `pattern`, which only describe the input, are not checked.

use serde_json::{Map, Value};

use super::answer_fault::AnswerFault;

/// Checks the values of a form.
///
/// # Errors
/// Returns the first fault: the form is no flat schema, a field is missing or unknown, or a value has the wrong type,
/// is not offered, or is out of bounds.
pub(super) fn check_form_values(schema: Option<&Value>, values: &Value) -> Result<(), AnswerFault> {
    let schema = schema.and_then(Value::as_object).ok_or(AnswerFault::UnsupportedForm)?;
    if schema.get("type").is_some_and(|it| it != "object") {
        return Err(AnswerFault::UnsupportedForm);
    }
    let no_fields = Map::new();
    let fields = match schema.get("properties") {
        None => &no_fields,
        Some(fields) => fields.as_object().ok_or(AnswerFault::UnsupportedForm)?,
    };
    let values = values.as_object().ok_or(AnswerFault::NotAnObject)?;
    check_required(schema.get("required"), values)?;
    for (name, value) in values {
        let field = fields.get(name).ok_or(AnswerFault::UnknownField)?;
        let field = field.as_object().ok_or(AnswerFault::UnsupportedForm)?;
        FormField { name, schema: field }.check_value(value)?;
    }
    Ok(())
}

fn check_required(
    required: Option<&Value>,
    values: &Map<String, Value>,
) -> Result<(), AnswerFault> {
    let Some(required) = required else { return Ok(()) };
    for name in required.as_array().ok_or(AnswerFault::UnsupportedForm)? {
        let name = name.as_str().ok_or(AnswerFault::UnsupportedForm)?;
        if !values.contains_key(name) {
            return Err(AnswerFault::MissingField { field: name.to_owned() });
        }
    }
    Ok(())
}

/// Field of a form.
struct FormField<'s> {
    name: &'s str,
    schema: &'s Map<String, Value>,
}

impl FormField<'_> {
    fn check_value(&self, value: &Value) -> Result<(), AnswerFault> {
        match self.schema.get("type").and_then(Value::as_str) {
            Some("string") => {
                let text = value.as_str().ok_or_else(|| self.wrong_type("string"))?;
                self.check_size(text.chars().count(), "minLength", "maxLength")?;
            }
            Some("boolean") if !value.is_boolean() => return Err(self.wrong_type("boolean")),
            Some("boolean") => {}
            Some("number") => self.check_number(value, "number")?,
            Some("integer") => self.check_number(value, "integer")?,
            Some("array") => return self.check_list(value),
            _ => return Err(AnswerFault::UnsupportedForm),
        }
        self.check_offered(self.schema, value)
    }

    fn check_number(&self, value: &Value, expected: &'static str) -> Result<(), AnswerFault> {
        let number = value.as_f64().ok_or_else(|| self.wrong_type(expected))?;
        if expected == "integer" && !(value.is_i64() || value.is_u64() || number.fract() == 0.0) {
            return Err(self.wrong_type(expected));
        }
        let bound =
            |name| self.schema.get(name).map(|it| it.as_f64().ok_or(AnswerFault::UnsupportedForm));
        let is_beyond = |name, violates: fn(f64, f64) -> bool| match bound(name) {
            None => Ok(false),
            Some(limit) => Ok(violates(number, limit?)),
        };
        let is_out_of_bounds = is_beyond("minimum", |number, limit| number < limit)?
            || is_beyond("maximum", |number, limit| number > limit)?
            || is_beyond("exclusiveMinimum", |number, limit| number <= limit)?
            || is_beyond("exclusiveMaximum", |number, limit| number >= limit)?;
        if is_out_of_bounds { Err(self.out_of_bounds()) } else { Ok(()) }
    }

    /// Checks a list of texts, each of which the schema offers.
    fn check_list(&self, value: &Value) -> Result<(), AnswerFault> {
        let list = value.as_array().ok_or_else(|| self.wrong_type("array"))?;
        self.check_size(list.len(), "minItems", "maxItems")?;
        let items = self.schema.get("items").and_then(Value::as_object);
        let items = items.ok_or(AnswerFault::UnsupportedForm)?;
        for item in list {
            if !item.is_string() {
                return Err(self.wrong_type("array"));
            }
            self.check_offered(items, item)?;
        }
        Ok(())
    }

    fn check_size(&self, size: usize, min: &str, max: &str) -> Result<(), AnswerFault> {
        let bound = |name: &str| match self.schema.get(name) {
            None => Ok(None),
            Some(limit) => limit.as_u64().map(Some).ok_or(AnswerFault::UnsupportedForm),
        };
        let size = u64::try_from(size).unwrap_or(u64::MAX);
        if bound(min)?.is_some_and(|min| size < min) || bound(max)?.is_some_and(|max| size > max) {
            return Err(self.out_of_bounds());
        }
        Ok(())
    }

    /// Checks that a schema offers a value, by `enum`, `const`, or a list of titled constants.
    fn check_offered(&self, schema: &Map<String, Value>, value: &Value) -> Result<(), AnswerFault> {
        let constants = |name: &str| match schema.get(name) {
            None => Ok(None),
            Some(constants) => constants.as_array().map(Some).ok_or(AnswerFault::UnsupportedForm),
        };
        let is_offered = schema.get("const").is_none_or(|it| it == value)
            && constants("enum")?.is_none_or(|constants| constants.contains(value))
            && constants("oneOf")?.is_none_or(|constants| has_constant(constants, value))
            && constants("anyOf")?.is_none_or(|constants| has_constant(constants, value));
        if is_offered {
            Ok(())
        } else {
            Err(AnswerFault::NotOffered { field: self.name.to_owned() })
        }
    }

    fn wrong_type(&self, expected: &'static str) -> AnswerFault {
        AnswerFault::WrongType { field: self.name.to_owned(), expected }
    }

    fn out_of_bounds(&self) -> AnswerFault {
        AnswerFault::OutOfBounds { field: self.name.to_owned() }
    }
}

fn has_constant(list: &[Value], value: &Value) -> bool {
    list.iter().any(|entry| entry.get("const") == Some(value))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn find_fault(field: Value, value: Value) -> Option<AnswerFault> {
        let schema = json!({"type": "object", "properties": {"f": field}, "required": ["f"]});
        check_form_values(Some(&schema), &json!({"f": value})).err()
    }

    #[test]
    fn values_of_the_right_type_and_size_pass() {
        for (field, value) in [
            (json!({"type": "string"}), json!("")),
            (json!({"type": "string", "minLength": 2, "maxLength": 2}), json!("äö")),
            (json!({"type": "string", "enum": ["a", "b"]}), json!("b")),
            (json!({"type": "string", "oneOf": [{"const": "a", "title": "A"}]}), json!("a")),
            (json!({"type": "string", "format": "email"}), json!("no address")),
            (json!({"type": "boolean", "default": true}), json!(false)),
            (json!({"type": "number", "minimum": 1, "maximum": 2}), json!(1.5)),
            (json!({"type": "integer", "minimum": 1, "maximum": 2}), json!(2)),
            (json!({"type": "integer"}), json!(2.0)),
            (json!({"type": "integer"}), json!(u64::MAX)),
            (json!({"type": "array", "items": {"type": "string", "enum": ["a"]}}), json!(["a"])),
            (json!({"type": "array", "items": {"anyOf": [{"const": "a"}]}}), json!([])),
        ] {
            assert_eq!(find_fault(field.clone(), value.clone()), None, "{field} {value}");
        }
    }

    #[test]
    fn other_values_are_refused() {
        let field_name = || "f".to_owned();
        let wrong_type = |expected| AnswerFault::WrongType { field: field_name(), expected };
        let out_of_bounds = || AnswerFault::OutOfBounds { field: field_name() };
        let not_offered = || AnswerFault::NotOffered { field: field_name() };
        for (field, value, expected) in [
            (json!({"type": "string"}), json!(1), wrong_type("string")),
            (json!({"type": "string"}), json!(null), wrong_type("string")),
            (json!({"type": "boolean"}), json!("true"), wrong_type("boolean")),
            (json!({"type": "number"}), json!("1"), wrong_type("number")),
            (json!({"type": "integer"}), json!(1.5), wrong_type("integer")),
            (json!({"type": "integer"}), json!(true), wrong_type("integer")),
            (json!({"type": "array", "items": {}}), json!("a"), wrong_type("array")),
            (json!({"type": "array", "items": {}}), json!([1]), wrong_type("array")),
            (json!({"type": "string", "minLength": 2}), json!("a"), out_of_bounds()),
            (json!({"type": "string", "maxLength": 2}), json!("abc"), out_of_bounds()),
            (json!({"type": "number", "minimum": 1}), json!(0.9), out_of_bounds()),
            (json!({"type": "number", "maximum": 1}), json!(1.1), out_of_bounds()),
            (json!({"type": "number", "exclusiveMinimum": 1}), json!(1), out_of_bounds()),
            (json!({"type": "number", "exclusiveMaximum": 1}), json!(1), out_of_bounds()),
            (json!({"type": "array", "items": {}, "minItems": 1}), json!([]), out_of_bounds()),
            (
                json!({"type": "array", "items": {}, "maxItems": 1}),
                json!(["a", "b"]),
                out_of_bounds(),
            ),
            (json!({"type": "string", "enum": ["a"]}), json!("b"), not_offered()),
            (json!({"type": "string", "oneOf": [{"const": "a"}]}), json!("b"), not_offered()),
            (json!({"type": "array", "items": {"enum": ["a"]}}), json!(["a", "b"]), not_offered()),
            (json!({"type": "object"}), json!({}), AnswerFault::UnsupportedForm),
            (json!({}), json!("a"), AnswerFault::UnsupportedForm),
            (json!(true), json!("a"), AnswerFault::UnsupportedForm),
            (json!({"type": "string", "enum": "a"}), json!("a"), AnswerFault::UnsupportedForm),
            (json!({"type": "number", "minimum": "1"}), json!(1), AnswerFault::UnsupportedForm),
            (json!({"type": "string", "minLength": -1}), json!("a"), AnswerFault::UnsupportedForm),
            (json!({"type": "array"}), json!(["a"]), AnswerFault::UnsupportedForm),
        ] {
            assert_eq!(find_fault(field.clone(), value.clone()), Some(expected), "{field} {value}");
        }
    }

    #[test]
    fn fields_are_complete_and_known() {
        let schema = json!({
            "type": "object",
            "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
            "required": ["a"],
        });
        let check = |values: Value| check_form_values(Some(&schema), &values);
        assert_eq!(check(json!({"a": "x"})), Ok(()));
        assert_eq!(check(json!({"a": "x", "b": "y"})), Ok(()));
        let missing = AnswerFault::MissingField { field: "a".to_owned() };
        assert_eq!(check(json!({"b": "y"})), Err(missing));
        assert_eq!(check(json!({"a": "x", "c": "z"})), Err(AnswerFault::UnknownField));
        assert_eq!(check(json!(["x"])), Err(AnswerFault::NotAnObject));
        assert_eq!(check(json!(null)), Err(AnswerFault::NotAnObject));
    }

    #[test]
    fn a_form_without_a_flat_schema_takes_no_values() {
        for schema in [
            None,
            Some(json!(true)),
            Some(json!({"type": "array"})),
            Some(json!({"properties": []})),
            Some(json!({"required": "a"})),
            Some(json!({"required": [1]})),
        ] {
            let fault = check_form_values(schema.as_ref(), &json!({}));
            assert_eq!(fault, Err(AnswerFault::UnsupportedForm), "{schema:?}");
        }
    }
}
