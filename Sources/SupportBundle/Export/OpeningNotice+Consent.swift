package import Lazaret

extension OpeningNotice {
  /// Asks for consent to send a report, listing the data.
  ///
  /// The translation keys are `lazaret.notice.send-report.facts`, `.damaged-pages`, `.scrubbed` and `.full`.
  package static func consent(to preview: ExportPreview) -> OpeningNotice {
    let content =
      switch preview.level {
      case .facts: "It says what is damaged and on what system, and holds none of your data."
      case .damagedPages:
        "It holds the damaged parts of the file with your data as they are, which can be some of your data."
      case .scrubbed:
        "It holds the file with your data with every text, number, date and picture replaced by a meaningless one."
      case .full: "It holds all of your data."
      }
    let size = preview.asked.map { " About \(words(ofSize: $0.packedBytes)) will be sent." } ?? ""
    return OpeningNotice(
      key: "lazaret.notice.send-report.\(preview.level.rawValue)", title: "Send a report to support?",
      message: "The report helps to find out what happened. \(content)\(size)",
      actions: [
        Action(key: "lazaret.action.send", title: "Send"),
        Action(key: "lazaret.action.show-content", title: "Show What Is Sent"),
        Action(key: "lazaret.action.not-now", title: "Not Now"),
      ])
  }

  private static func words(ofSize bytes: Int64) -> String {
    if bytes < 1_000_000 { return "\(max(1, bytes / 1000)) kB" }
    if bytes < 1_000_000_000 { return "\(bytes / 1_000_000) MB" }
    return "\(bytes / 100_000_000 / 10).\(bytes / 100_000_000 % 10) GB"
  }
}
