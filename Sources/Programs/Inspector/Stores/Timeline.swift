import HTTPServer
import StoreCoordination

/// What happened to a quarantined store, oldest first.
struct Timeline: Sendable {
  let moments: [Receipt.Moment]

  func html(now: Timestamp) -> HTML {
    let items = moments.map { moment -> HTML in
      let path: HTML = moment.path.map { "<br><code>\(printable($0.text))</code>" } ?? .empty
      let words: HTML = moment.words.map { "<br><span class=\"soft\">\(printable($0))</span>" } ?? .empty
      return """
        <li class="\(Self.tone(moment.kind).rawValue)"><time datetime="\(printable(moment.date))">\
        \(Timestamp(moment.date).map(Words.date) ?? printable(moment.date))</time>\
        <strong>\(Self.title(moment.kind))</strong>\(words)\(path)</li>
        """
    }
    return "<ol class=\"timeline\">\(items)</ol>"
  }

  /// What kind of thing it was, in a few words.
  static func title(_ kind: Receipt.Moment.Kind) -> String {
    switch kind {
    case .quarantined: "Quarantined"
    case .salvaged: "Salvaged"
    case .salvageFailed: "A salvage gave nothing"
    case .installed: "Installed at the app's path"
    case .replaced: "An empty store took its place"
    case .exported: "Exported"
    case .sent: "Sent"
    case .received: "Received with a bundle"
    case .released: "Put back"
    default: sentence(printable(kind.rawValue.replacing("-", with: " ")))
    }
  }

  /// Whether it was good or bad.
  static func tone(_ kind: Receipt.Moment.Kind) -> HTML.Tone {
    switch kind {
    case .quarantined, .salvageFailed: .bad
    case .salvaged, .installed, .released: .good
    default: .plain
    }
  }
}
