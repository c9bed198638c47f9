import Inbox

/// A reason for which jobs of the inbox wait for their surroundings, and how many do.
struct InboxHindrance: Sendable, Hashable {
  /// The stable word of it.
  let code: String

  /// How many jobs wait for it.
  let count: Int

  private static let maximum = 20

  /// What stands for words that are no stable ones: a worker has read hostile bytes.
  private static let other = "other"

  /// The reasons, that of the most jobs first.
  static func all(of inbox: Inbox) throws(InboxError) -> [InboxHindrance] {
    let found = try inbox.queue.hindrances(limit: maximum)
    let told = Dictionary(found.map { (isWord($0.key) ? $0.key : other, $0.value) }) { $0 + $1 }
    return told.map { InboxHindrance(code: $0.key, count: $0.value) }
      .sorted { ($1.count, $0.code) < ($0.count, $1.code) }
  }

  private static func isWord(_ code: String) -> Bool {
    (1...60).contains(code.utf8.count)
      && code.utf8.allSatisfy { byte in
        (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte) || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
          || byte == UInt8(ascii: "-")
      }
  }
}
