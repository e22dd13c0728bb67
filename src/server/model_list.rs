//! Chooses a model from the list of a server (pure).

use crate::error::Error;
use crate::provider::request::ListedModel;
use crate::provider::table;
use crate::text::nearest::did_you_mean;
use crate::text::one_line::on_one_line;

/// How many of the provider's models an error names.
const NAMED_MODELS: usize = 10;

/// Returns the model to ask of a list: the first that is loaded, where the list says so, else the first. Those that cannot chat
/// do not count, nor does `except`.
pub fn first_of(models: &[ListedModel], except: Option<&str>) -> Option<String> {
    let can_chat = |model: &&ListedModel| !model.cannot_chat && except != Some(&*model.id);
    let mut chatting = models.iter().filter(can_chat);
    let loaded = chatting.clone().find(|model| model.is_loaded);
    let first = loaded.or_else(|| chatting.next())?;
    Some(first.id.clone())
}

/// Returns the newest model of a family by the times in the list, else the first.
pub fn newest_of(models: &[ListedModel], family: &str) -> Option<String> {
    let of_family = models
        .iter()
        .filter(|model| table::is_of_family(&model.id, family));
    // Of several that are equally new, the last one counts: in this order, the first of the list.
    let newest = of_family.rev().max_by_key(|model| &model.created)?;
    Some(newest.id.clone())
}

/// Adds the most similar one of the models to the error about one that a user has named.
pub fn advise_similar(error: Error, model: &str, models: &[ListedModel]) -> Error {
    let mut names = Vec::from_iter(models.iter().map(|listed| listed.id.as_str()));
    names.retain(|listed| *listed != model);
    let mut advice = did_you_mean(model, names);
    advice += error.advice.as_deref().unwrap_or_default();
    error.advise(advice)
}

/// Adds the first of a provider's models to an error, and how to list the others.
pub fn advise_some(error: Error, provider: &str, models: &[ListedModel]) -> Error {
    let names = models.iter().take(NAMED_MODELS);
    let names = Vec::from_iter(names.map(|listed| listed.id.as_str()));
    let names = on_one_line(&names.join(", "));
    let mut advice = format!("choose a model with -m or Q_MODEL: {names}");
    let others = models.len().saturating_sub(NAMED_MODELS);
    if others > 0 {
        advice += &format!(", and {others} more (q --models -p {provider})");
    }
    error.advise(advice)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::read_models;
    use crate::text::table::rows;

    #[test]
    fn of_a_local_server_the_first_loaded_model_that_can_chat_is_asked() {
        // The server, its list, and the model to ask; after that could not chat, the next one.
        let table = r##"
            ollama | {"data":[{"id":"nomic-embed-text:latest"},{"id":"qwen3:4b"},{"id":"gemma"}]} | qwen3:4b | gemma
            ollama | {"data":[{"id":"bge-m3"},{"id":"Qwen3-Reranker"},{"id":"whisper-1"},{"id":"a"}]} | a | -
            ollama, only embedding | {"data":[{"id":"mxbai-embed-large"}]} | - | -
            llama.cpp's router | {"data":[{"id":"a","status":{"value":"unloaded","args":["x"]}},{"id":"b","status":{"value":"loaded"}},{"id":"c","status":{"value":"loading"}}]} | b | a
            llama.cpp's router, asleep | {"data":[{"id":"a","status":{"value":"unloaded"}},{"id":"b","status":{"value":"sleeping"}}]} | b | a
            llama.cpp's router, embedding | {"data":[{"id":"x-embed","status":{"value":"loaded"}},{"id":"b","status":{"value":"unloaded"}}]} | b | -
            llama.cpp, modalities | {"data":[{"id":"a","architecture":{"input_modalities":["text"],"output_modalities":["embeddings"]}},{"id":"b","architecture":{"input_modalities":["text"],"output_modalities":["text"]}}]} | b | -
            lm studio, v0 | {"data":[{"id":"e","type":"embeddings","state":"loaded"},{"id":"a","type":"llm","state":"not-loaded"},{"id":"b","type":"vlm","state":"loaded"}]} | b | a
            lm studio, v1 | {"models":[{"id":"e","type":"embedding"},{"id":"embedder-of-text","type":"llm"}]} | embedder-of-text | -
            lemonade | {"data":[{"id":"e","labels":["embeddings"]},{"id":"r","labels":["reranking"]},{"id":"a","labels":["vision"]}]} | a | -
            capabilities | {"data":[{"id":"e","capabilities":["embedding"]},{"id":"a","capabilities":["completion","embedding"]}]} | a | -
            odd values | {"data":[{"id":"a","status":7,"state":null,"type":[],"loaded":"x","labels":{}}]} | a | -
        "##;
        for [server, list, first, next] in rows(table) {
            let models = read_models(list).expect(list).models;
            let found = first_of(&models, None).unwrap_or_default();
            assert_eq!(found, first, "{server}");
            let found = first_of(&models, Some(&found)).unwrap_or_default();
            assert_eq!(found, next, "{server}, the next");
        }
    }

    #[test]
    fn the_newest_model_of_a_family_is_found_by_time_else_by_order() {
        // The models with the times of some, and the newest of the family.
        let table = r##"
            gpt-6-luna=1 gpt-7-luna=3 gpt-8-sol=9 | gpt-7-luna
            gpt-6-luna gpt-7-luna | gpt-6-luna
            gpt-6-luna gpt-7-luna=3 | gpt-7-luna
            gpt-8-sol=9 | -
            - | -
        "##;
        for [listed, newest] in rows(table) {
            let models = listed.split(' ').map(|model| ListedModel {
                id: model.split('=').next().unwrap_or_default().to_owned(),
                created: model.split_once('=').map(|(_, time)| time.to_owned()),
                ..ListedModel::default()
            });
            let found = newest_of(&Vec::from_iter(models), "gpt-*-luna");
            assert_eq!(found.unwrap_or_default(), newest, "{listed}");
        }
    }
}
