import HTTPServer
import Platform
import SQLiteFormat

/// A side's name in URLs: `original`, `salvaged`, `set-aside`, `live`, `backup-2026-11-21-10-11-12-1a2b3c4d`.
enum SideName: Sendable, Hashable, CustomStringConvertible {
  /// The readable rows of the original bytes.
  case original

  case salvaged

  /// Rows left out of the salvaged store.
  case setAside

  case live

  case backup(StoreID)

  init?(_ text: String) {
    switch text {
    case "original": self = .original
    case "salvaged": self = .salvaged
    case "set-aside": self = .setAside
    case "live": self = .live
    default:
      guard text.hasPrefix("backup-"), text.utf8.count > 7, text.utf8.count <= 140 else { return nil }
      self = .backup(StoreID("b" + text.dropFirst("backup".count)))
    }
  }

  var description: String {
    switch self {
    case .original: "original"
    case .salvaged: "salvaged"
    case .setAside: "set-aside"
    case .live: "live"
    case .backup(let id): "backup" + id.text.dropFirst()
    }
  }

  var title: String {
    switch self {
    case .original: "As found"
    case .salvaged: "Salvaged"
    case .setAside: "Set aside"
    case .live: "Live store"
    case .backup(let id): "Backup \(Self.moment(id))"
    }
  }

  /// The name within a sentence.
  var phrase: String {
    switch self {
    case .original: "the store as found"
    case .salvaged: "the salvaged store"
    case .setAside: "what was set aside"
    case .live: "the live store"
    case .backup(let id): "the backup of \(Self.moment(id))"
    }
  }

  var words: String {
    switch self {
    case .original: "Every row that can still be read in the bytes of the store, with the place it was found at."
    case .salvaged: "The clean store that was made of them."
    case .setAside: "Rows that could not be part of the clean store, and why."
    case .live: "The store at the app's path now, as of one moment."
    case .backup: "The store as it was when the backup was taken."
    }
  }

  private static func moment(_ id: StoreID) -> String {
    // Earlier versions lack the mark of backups before the time.
    let name = id.text.drop { !$0.isNumber }.prefix(19)
    return Timestamp(String(name)).map(Words.date) ?? String(name)
  }
}

extension PathParameter where Value == SideName {
  static var side: PathParameter { PathParameter { SideName($0) } }
}
