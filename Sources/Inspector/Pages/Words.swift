internal import Backup
package import HTTPServer
package import Platform
internal import Salvage
internal import SupportBundle

/// The pages' words for codes and numbers.
package enum Words {
  /// A time such as `21 Nov 2026, 10:11 UTC`; a month's first moment, which may mean any of it, as `Nov 2026`.
  package static func date(_ time: Timestamp) -> String {
    let parts = time.civil
    let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
    let month = months.indices.contains(parts.month - 1) ? months[parts.month - 1] : "?"
    func two(_ number: Int) -> String { number < 10 ? "0\(number)" : String(number) }
    if time.isBeginningOfMonth { return "\(month) \(parts.year)" }
    return "\(parts.day) \(month) \(parts.year), \(two(parts.hour)):\(two(parts.minute)) UTC"
  }

  package static func time(_ time: Timestamp, now: Timestamp) -> HTML {
    "<time datetime=\"\(time.rfc3339)\" title=\"\(time.rfc3339)\">\(date(time))</time>\(time.isBeginningOfMonth ? .empty : ago(time, now: now))"
  }

  /// A time in RFC 3339 from a file, or its text if invalid.
  static func time(_ text: String, now: Timestamp) -> HTML {
    guard let time = Timestamp(text) else { return HTML(escaping: printable(text)) }
    return self.time(time, now: now)
  }

  private static func ago(_ time: Timestamp, now: Timestamp) -> HTML {
    let seconds = now.secondsSince1970 - time.secondsSince1970
    switch seconds {
    case ..<0: return .empty
    case ..<90: return ", just now"
    case ..<5400: return ", \((seconds + 30) / 60) minutes ago"
    case ..<129_600: return ", \((seconds + 1800) / 3600) hours ago"
    case ..<2_592_000: return ", \((seconds + 43_200) / 86_400) days ago"
    default: return .empty
    }
  }

  static func salvage(_ phase: SalvagePhase) -> String {
    switch phase.rawValue {
    case "survey": "looking at every page"
    case "placement": "finding whose pages they are"
    case "rows": "reading records"
    case "rebuild": "writing a clean store"
    case "migration": "bringing it to the current model"
    default: phase.rawValue
    }
  }

  static func backup(_ phase: BackupPhase) -> String {
    switch phase {
    case .comparing: "looking for changes"
    case .packing: "packing"
    case .externalData: "packing large values"
    case .proving: "reading back what was written"
    case .unpacking: "unpacking"
    case .checking: "checking"
    }
  }

  static func sending(_ phase: SendingProgress.Phase) -> String {
    switch phase {
    case .asking: "asking the receiver"
    case .sending: "sending"
    case .pausing(let span, let code): "waiting \(span.components.seconds) s to try again (\(code))"
    case .finishing: "waiting for the receipt"
    }
  }
}
