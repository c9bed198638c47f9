internal import HTTPServer
import Platform

/// The page that explains an action and asks for confirmation.
///
/// Viewing it changes no store.
struct ActionForm: StoreSubpage {
  enum Choice: Sendable {
    case pick(name: String, label: String, options: [(value: String, label: String)])

    /// A checkbox; a required one must be ticked.
    case flag(name: String, label: String, about: String, isRequired: Bool = false, isTicked: Bool = false)

    /// An optional line of text.
    case text(name: String, label: String, about: String, value: String)

    static let understood = flag(
      name: "understood", label: "I understand that this cannot be taken back", about: "", isRequired: true)
  }

  let title: String

  let store: ListedStore

  let target: RequestTarget

  /// The effects of the action, one sentence each.
  let does: [String]

  let button: String

  var isFinal = false

  var obstacle: Problem?

  /// A link to an alternative if unavailable.
  var instead: (words: String, target: RequestTarget)?

  var choices: [Choice] = []

  /// The preview, as HTML and JSON.
  var preview: (html: HTML, json: any Encodable & Sendable)?

  init(
    _ title: String, of store: ListedStore, _ action: String, does: [String], button: String, choices: [Choice] = []
  ) {
    self.title = title
    self.store = store
    target = .store(store.id, action)
    self.does = does
    self.button = button
    self.choices = choices
  }

  func encode(to encoder: any Encoder) throws {
    try encoder.encode([
      "title": title, "store": store.id.text, "does": does, "final": isFinal, "obstacle": obstacle, "choices": choices,
      "preview": preview?.json, "action": target,
    ])
  }

  func content(_ frame: PageFrame) -> HTML {
    let way: HTML = instead.map { "<p>\(HTML.button($0.words, $0.target, isMain: true))</p>" } ?? .empty
    let ask =
      obstacle.map { $0.note + way }
      ?? frame.ask(target, button, fields: "\(choices.map(Self.field))", isFinal: isFinal, back: .store(store.id))
    let about: HTML = "\(store.name) · \(readableSize(store.bytes))"
    return frame.asking(title, about, does: does, (preview?.html ?? .empty) + ask)
  }

  static func field(_ choice: Choice) -> HTML {
    switch choice {
    case .pick(let name, let label, let options):
      let list = options.map { HTML.option($0.value, $0.label) }
      return "<p><label><span>\(label)</span><select name=\"\(name)\">\(list)</select></label></p>"
    case .flag(let name, let label, let about, let isRequired, let isTicked):
      let required: HTML = isRequired ? " required" : isTicked ? " checked" : ""
      let small: HTML = about.isEmpty ? .empty : "<small>\(about)</small>"
      return """
        <div class="choices"><label><input type="checkbox" name="\(name)" value="yes"\(required)>\
        <span class="said">\(label)\(small)</span></label></div>
        """
    case .text(let name, let label, let about, let value):
      let small = HTML.when(!about.isEmpty, "<small class=\"soft\">\(about)</small>")
      return """
        <p class="line-of-text"><label><span>\(label)</span><input type="text" name="\(name)" value="\(value)" \
        autocomplete="off" spellcheck="false"></label>\(small)</p>
        """
    }
  }
}

extension ActionForm.Choice: Encodable {
  func encode(to encoder: any Encoder) throws {
    switch self {
    case .pick(let name, let label, let options):
      let options = options.map { ["value": $0.value, "label": $0.label] }
      try encoder.encode(["name": name, "label": label, "options": options])
    case .flag(let name, let label, let about, let isRequired, let isTicked):
      try encoder.encode([
        "name": name, "label": label, "about": about, "required": isRequired, "ticked": isTicked, "options": ["yes"],
      ])
    case .text(let name, let label, let about, _):
      try encoder.encode(["name": name, "label": label, "about": about, "required": false])
    }
  }
}

/// The result of an action and the browser's next page.
struct ActionAnswer: Sendable {
  var target: RequestTarget

  var isDone: Bool

  var job: String?

  static func done(_ target: RequestTarget) -> ActionAnswer { ActionAnswer(target: target, isDone: true) }

  static func running(_ job: RunningWork.Job) -> ActionAnswer {
    ActionAnswer(target: .to("work", job.id), isDone: false, job: job.id)
  }

  /// A job shown on the given page, which receives its name.
  static func running(_ job: RunningWork.Job, on page: RequestTarget) -> ActionAnswer {
    var page = page
    page.query = Query([.init("job", job.id)])
    return ActionAnswer(target: page, isDone: false, job: job.id)
  }

  var json: JSON.Value {
    .members(
      ("done", .boolean(isDone)), ("location", .string(target.path + target.query.text)),
      ("job", job.map { .string($0) }))
  }
}

extension InspectorParts {
  /// Begins a job on a store.
  ///
  /// - Parameter target: the result's page; the store's if nil.
  func begin(
    _ kind: RunningWork.Job.Kind, _ title: String, of store: ListedStore, target: RequestTarget? = nil,
    _ body: @escaping @Sendable (JobObserver) throws -> JobOutcome
  ) throws(Refusal) -> ActionAnswer {
    .running(
      try work.start(kind, "\(title) of \(store.name)", store: store.id, target: target ?? .store(store.id), body))
  }
}
