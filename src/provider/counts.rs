//! Reads how many tokens a reply took, and what it cost, under the names of all APIs (pure).

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::lenient::{Json, Object, Scalar};
use crate::message::Usage;

/// The counts of tokens that an API reports, under whatever names, and the cost.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Counts {
    input_tokens: Scalar<u32>,
    prompt_tokens: Scalar<u32>,
    #[serde(rename = "promptTokenCount")]
    gemini_input: Scalar<u32>,
    output_tokens: Scalar<u32>,
    completion_tokens: Scalar<u32>,
    #[serde(rename = "candidatesTokenCount")]
    gemini_output: Scalar<u32>,
    input_tokens_details: Object<CountDetails>,
    prompt_tokens_details: Object<CountDetails>,
    cache_read_input_tokens: Scalar<u32>,
    #[serde(rename = "cachedContentTokenCount")]
    gemini_cached: Scalar<u32>,
    /// DeepSeek's name for what was read from a cache.
    prompt_cache_hit_tokens: Scalar<u32>,
    output_tokens_details: Object<CountDetails>,
    completion_tokens_details: Object<CountDetails>,
    #[serde(rename = "thoughtsTokenCount")]
    gemini_thoughts: Scalar<u32>,
    /// Moonshot's, Mistral's and Together's names and places for such counts.
    cached_tokens: Scalar<u32>,
    num_cached_tokens: Scalar<u32>,
    reasoning_tokens: Scalar<u32>,
    /// OpenRouter's and Perplexity's.
    cost: Cost,
    /// xAI's, in ten thousand millionths of a dollar.
    cost_in_usd_ticks: Scalar<f64>,
    /// Mistral's. The total has tokens for the sound then, which are in no other count.
    pub prompt_audio_seconds: Scalar<f64>,
    pub total_tokens: Scalar<u32>,
    pub cache_creation_input_tokens: Scalar<u32>,
    #[serde(rename = "toolUsePromptTokenCount")]
    pub gemini_tools: Scalar<u32>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct CountDetails {
    cached_tokens: Scalar<u32>,
    reasoning_tokens: Scalar<u32>,
    thinking_tokens: Scalar<u32>,
}

/// How many of xAI's units are a dollar.
const TICKS: f64 = 1e10;

impl Counts {
    /// Reads the counts in an object. A count that is there twice must not cost an answer, so the last one counts.
    pub fn read(json: Json) -> Counts {
        json.object().unwrap_or_else(|_| {
            let each_once = json.value().to_string();
            serde_json::from_str(&each_once).unwrap_or_default()
        })
    }

    /// Returns the cost in dollars.
    fn cost(&self) -> Option<f64> {
        let ticks = self.cost_in_usd_ticks.0.map(|ticks| ticks / TICKS);
        let cost = self.cost.0.or(ticks);
        cost.filter(|cost| cost.is_finite())
    }

    /// Returns the usage, as far as all APIs agree on what their counts mean.
    pub fn usage(&self) -> Usage {
        let of_input = self.input_tokens_details.0.as_ref();
        let of_prompt = self.prompt_tokens_details.0.as_ref();
        let of_output = self.output_tokens_details.0.as_ref();
        let of_completion = self.completion_tokens_details.0.as_ref();
        Usage {
            input_tokens: first([
                Some(self.input_tokens),
                Some(self.prompt_tokens),
                Some(self.gemini_input),
            ]),
            output_tokens: first([
                Some(self.output_tokens),
                Some(self.completion_tokens),
                Some(self.gemini_output),
            ]),
            cached_tokens: first([
                of_input.map(|details| details.cached_tokens),
                of_prompt.map(|details| details.cached_tokens),
                Some(self.cache_read_input_tokens),
                Some(self.gemini_cached),
                Some(self.prompt_cache_hit_tokens),
                Some(self.num_cached_tokens),
                Some(self.cached_tokens),
            ]),
            reasoning_tokens: first([
                of_output.map(|details| details.reasoning_tokens),
                of_completion.map(|details| details.reasoning_tokens),
                of_output.map(|details| details.thinking_tokens),
                Some(self.gemini_thoughts),
                Some(self.reasoning_tokens),
            ]),
            cost: self.cost(),
        }
    }
}

/// A cost in dollars: a number, or an object with a total; nothing if the value is no such one.
#[derive(Debug, Default)]
struct Cost(Option<f64>);

/// The costs of a reply's parts, and all of them.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Costs {
    total_cost: Scalar<f64>,
}

impl<'de> Deserialize<'de> for Cost {
    fn deserialize<D: Deserializer<'de>>(value: D) -> Result<Cost, D::Error> {
        let json = <&RawValue>::deserialize(value)?.get();
        let costs: Option<Object<Costs>> = serde_json::from_str(json).ok();
        let costs = costs.and_then(|costs| costs.0);
        let total = costs.and_then(|costs| costs.total_cost.0);
        Ok(Cost(total.or_else(|| json.parse().ok())))
    }
}

/// Returns the first count that is there. Larger ones than these are no counts, and their sum might be too large.
fn first<const N: usize>(counts: [Option<Scalar<u32>>; N]) -> Option<u64> {
    let mut there = counts.into_iter().flatten().filter_map(|count| count.0);
    there.next().map(u64::from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::table::rows;

    #[test]
    fn counts_and_costs_are_read_from_the_fields_of_each_provider() {
        let table = r##"
            - - 0.25 | {"cost":0.25}
            - - 0.0000123 | {"cost_in_usd_ticks":123000}
            - - 0.5 | {"cost":0.5,"cost_in_usd_ticks":1}
            - - - | {"cost_in_usd_ticks":"nan"}
            - - 0.006 | {"cost":{"input_tokens_cost":0.001,"request_cost":0.005,"total_cost":0.006}}
            - - - | {"cost":{"total":1},"cost_in_usd_ticks":"many"}
            - - - | {"cost":[1]}
            7 - - | {"cached_tokens":7}
            7 - - | {"num_cached_tokens":7}
            6 - - | {"prompt_tokens_details":{"cached_tokens":6},"cached_tokens":7}
            - 5 - | {"reasoning_tokens":5}
            - 4 - | {"completion_tokens_details":{"reasoning_tokens":4},"reasoning_tokens":5}
        "##;
        for [expected, json] in rows(table) {
            let counts: Counts = serde_json::from_str(json).expect(json);
            let usage = counts.usage();
            let shown = |number: Option<String>| number.unwrap_or("-".to_owned());
            let found = [
                shown(usage.cached_tokens.map(|count| count.to_string())),
                shown(usage.reasoning_tokens.map(|count| count.to_string())),
                shown(usage.cost.map(|cost| cost.to_string())),
            ];
            assert_eq!(found.join(" "), expected, "{json}");
        }
    }

    #[test]
    fn a_count_is_the_whole_number_in_the_first_field_that_has_one() {
        let table = r##"
            7 | {"input_tokens":7}
            0 | {"input_tokens":0,"prompt_tokens":7}
            8 | {"input_tokens":"8","prompt_tokens":7}
            7 | {"input_tokens":"many","prompt_tokens":7}
            7 | {"input_tokens":7.0}
            7 | {"input_tokens":"7.0"}
            - | {"input_tokens":"7.5"}
            - | {"input_tokens":7.5}
            - | {"input_tokens":-1}
            4294967295 | {"promptTokenCount":4294967295}
            - | {"promptTokenCount":4294967296}
            - | {"promptTokenCount":1e999,"cost":1e999,"prompt_tokens_details":7}
            - | {"input_tokens":[7],"input_tokens_details":[]}
        "##;
        for [count, json] in rows(table) {
            let counts: Counts = serde_json::from_str(json).expect(json);
            let usage = Usage {
                input_tokens: count.parse().ok(),
                ..Usage::default()
            };
            assert_eq!(counts.usage(), usage, "{json}");
        }
    }
}
