import HTTPServer
import StoreCoordination

extension RunningWork.Job {
  /// The job as a box: what is done, how far it is, and a button that ends it; what came of it once it has ended.
  func html(_ frame: PageFrame, isLinked: Bool = true) -> HTML {
    let name: HTML = isLinked ? "<a href=\"\(target)\">\(title)</a>" : HTML(escaping: title)
    guard isRunning else {
      let tone: HTML.Tone = state == .done ? .good : state == .failed ? .bad : .warn
      let hint: HTML = state == .failed ? problem?.hint.map { "<p class=\"soft\">\($0)</p>" } ?? .empty : .empty
      return .note(tone, "<p><strong>\(name)</strong>: \(words ?? state.rawValue)</p>\(hint)")
    }
    let percent = fraction.map { Int($0 * 100) }
    let value: HTML = fraction.map { "value=\"\(String($0))\"" } ?? .empty
    let left = secondsLeft.map { Words.left($0) }
    let text = [phase, percent.map { "\($0) %" }, left].compactMap(\.self).joined(separator: " · ")
    let cancel = frame.allowsActions ? frame.button("Cancel", .to("work", id, "cancel")) : .empty
    return """
      <div class="note job" data-job="\(id)"><p><strong>\(name)</strong></p>\
      <progress max="1" \(value) aria-label="\(title)"></progress>\
      <p class="row"><span data-job-text aria-live="polite">\(text)</span>\(cancel)</p></div>
      """
  }
}

extension Words {
  /// How long something will take yet.
  static func left(_ seconds: Double) -> String {
    switch seconds {
    case ..<2: "almost done"
    case ..<90: "about \(Int(seconds)) seconds left"
    default: "about \(Int(min(1e9, seconds / 60)) + 1) minutes left"
    }
  }
}
