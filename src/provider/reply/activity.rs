//! What the model or its provider does besides answering, and what q says of it (pure).

/// What the spinner says while reasoning comes.
pub const THINKING: &str = "thinking";

/// The activity of the model or its provider besides answering.
#[derive(Debug, Default)]
pub struct Activity {
    /// What the spinner says of it; `None` while the model answers.
    pub sign: Option<&'static str>,
    /// Why each search that has failed did so.
    pub failed_searches: Vec<String>,
    /// How many images the answer has. They are not kept.
    pub images: usize,
}

impl Activity {
    /// Records that the provider searches the web.
    pub fn search(&mut self) {
        self.sign = Some("searching the web");
    }

    /// Records that the model thinks.
    pub fn think(&mut self) {
        self.sign = Some(THINKING);
    }

    /// Records that the model answers or calls.
    pub fn end(&mut self) {
        self.sign = None;
    }
}

/// Says that q does not keep the images of the answer, if it has any.
pub fn note_of_images(images: usize) -> Option<String> {
    match images {
        0 => None,
        1 => Some("the answer has 1 image, which q does not keep".to_owned()),
        _ => Some(format!(
            "the answer has {images} images, which q does not keep"
        )),
    }
}
