import HTTPServer
import Inbox
import Platform
import Salvage
import SupportBundle

/// The wording and tags of the inbox.
enum InboxWords {
  static func state(_ bundle: InboxBundle) -> (words: String, tone: HTML.Tone) {
    switch bundle.state {
    case .received: ("waits to be opened", .accent)
    case .encrypted: ("encrypted", .warn)
    case .refused: ("refused", .bad)
    case .unpacked: ("checked, without a store", .good)
    case .quarantined: ("its store is in quarantine", .good)
    }
  }

  static func choice(_ state: InboxBundle.State) -> String {
    switch state {
    case .received: "Waiting"
    case .encrypted: "Encrypted"
    case .refused: "Refused"
    case .unpacked: "Without a store"
    case .quarantined: "With a store"
    }
  }

  static func job(_ kind: InboxJob.Kind) -> String {
    switch kind {
    case .open: "Check and unpack"
    case .salvage: "Salvage the store"
    }
  }

  static func state(_ job: InboxJob) -> (words: String, tone: HTML.Tone) {
    switch job.state {
    case .waiting where job.isHindered: ("waits until what is in its way is gone", .warn)
    case .waiting: (job.attempts == 0 ? "waits" : "waits for another try", .plain)
    case .running: ("running", .accent)
    case .done: ("done", .good)
    case .failed: ("failed", .bad)
    }
  }

  static func choice(_ state: InboxJob.State) -> String {
    switch state {
    case .waiting: "Waiting"
    case .running: "Running"
    case .done: "Done"
    case .failed: "Failed"
    }
  }

  /// A bundle's title: app and store if known, else the file name.
  static func title(_ bundle: InboxBundle) -> String {
    let parts = [bundle.app, bundle.store].compactMap { text in text.flatMap { $0.isEmpty ? nil : $0 } }
    if !parts.isEmpty { return printable(parts.joined(separator: " · ")) }
    let name = bundle.fileName.map(printable) ?? ""
    return name.isEmpty ? "Bundle \(bundle.id.prefix(8))" : name
  }

  /// The damage of a bundle's store in a sentence.
  static func about(_ bundle: InboxBundle) -> String {
    if let failure = bundle.failure { return printable(failure.words) }
    if bundle.state == .encrypted {
      return
        "Encrypted, \(readableSize(bundle.bytes)), from \(printable(bundle.sender)). The key was not given to this process."
    }
    guard let facts = bundle.facts else {
      return bundle.state == .received ? "It has just arrived." : "It says nothing of its store."
    }
    var text = printable(facts.verdict).isEmpty ? "unknown" : printable(facts.verdict)
    if !facts.reason.isEmpty { text += ": \(words(ofCode: facts.reason))" }
    if let cause = facts.cause { text += ", most likely \(words(ofCode: cause))" }
    return text.capitalizedFirst + "."
  }

  /// The words of a code, such as `zeroed pages` for `zeroed-pages`.
  private static func words(ofCode code: String) -> String { printable(code).replacing("-", with: " ") }

  static func about(_ fingerprint: DamageFingerprint) -> String {
    var text = printable(fingerprint.verdict)
    if text.isEmpty { text = "unknown" }
    if !fingerprint.entities.isEmpty {
      let names = fingerprint.entities.prefix(4).map(printable).joined(separator: ", ")
      let more = fingerprint.entities.count > 4 ? " and \(fingerprint.entities.count - 4) more" : ""
      text += " in \(names)\(more)"
    }
    return text.capitalizedFirst
  }

  /// The page states: `a few damaged, one unreadable`.
  static func states(_ fingerprint: DamageFingerprint) -> String {
    fingerprint.states.sorted { $0.key < $1.key }.map { state, share in
      "\(words(share, one: "one page")) \(printable(state))"
    }.joined(separator: ", ")
  }

  static func words(_ share: DamageFingerprint.Share, one: String) -> String {
    switch share {
    case .one: one
    case .few: "few pages"
    case .some: "some pages"
    case .many: "many pages"
    case .most: "most pages"
    }
  }

  private static let states = PageStates.State.allCases

  static func bar(_ counts: [String: Int64]) -> HTML {
    // A bundle's numbers may have any size.
    let known = states.compactMap { state -> (PageStates.State, Double)? in
      guard let count = counts[state.rawValue], count > 0 else { return nil }
      return (state, Double(count))
    }
    let all = known.reduce(0) { $0 + $1.1 }
    guard all > 0 else { return .empty }
    var start = 0
    let shapes = known.enumerated().map { index, item -> HTML in
      let width = index == known.count - 1 ? 1000 - start : max(4, Int(item.1 / all * 1000))
      defer { start += width }
      return "<rect class=\"page-\(item.0.rawValue)\" x=\"\(start)\" width=\"\(max(0, width))\" height=\"8\"/>"
    }
    let words = known.map { "\(grouped(Int64(min($0.1, 1e15)))) \($0.0.rawValue)" }.joined(separator: ", ")
    return """
      <svg class="share" viewBox="0 0 1000 8" preserveAspectRatio="none" role="img" aria-label="Pages: \(words)">\
      \(shapes)</svg>
      """
  }

  static func legend(_ counts: [String: Int64]) -> HTML {
    let items = states.compactMap { state -> HTML? in
      guard let count = counts[state.rawValue], count > 0 else { return nil }
      return """
        <li><span class="swatch \(state.rawValue)" aria-hidden="true"></span>\(state.rawValue) \
        <span class="soft">\(grouped(count))</span></li>
        """
    }
    return "<ul class=\"legend\">\(items)</ul>"
  }
}

extension RequestTarget {
  static func bundle(_ id: String, _ below: String...) -> RequestTarget {
    RequestTarget(segments: ["inbox", "bundles", id] + below)
  }

  static func damage(_ id: String) -> RequestTarget { .to("inbox", "groups", id) }
}

extension Crumb {
  static let inbox = Crumb("Inbox", .to("inbox"))
}
