package import Backup
package import HTTPServer
import Inbox
package import Lazaret
internal import Platform
import SQLiteFormat
import SystemPackage

/// A store known to the inspector: quarantined, live, or a backup.
package struct ListedStore: Sendable {
  enum Kind: Sendable {
    case quarantined(QuarantinedStore, QuarantineFolder)

    /// A live store, possibly in use.
    case live(StoreFileSet)

    case backup(StoredBackup, FolderPlace)
  }

  package let id: StoreID

  let kind: Kind

  /// The app's file name, safe to display.
  let name: String

  /// The time of quarantine, last change or backup.
  let date: Timestamp?

  /// The total size in bytes.
  let bytes: Int64

  /// Whether a quarantined store's files are missing, leaving its receipt.
  var isMissing = false

  /// Whether only the receipt exists, without a salvaged store.
  var isOnlyReceipt = false

  package var quarantined: QuarantinedStore? {
    guard case .quarantined(let store, _) = kind else { return nil }
    return store
  }

  package var backup: (backup: StoredBackup, place: FolderPlace)? {
    guard case .backup(let backup, let place) = kind else { return nil }
    return (backup, place)
  }

  /// The store's own files, which SQLite must never open; nil for backups, which need unpacking, and missing files.
  var files: StoreFileSet? {
    switch kind {
    case .quarantined(let store, _): isMissing ? nil : store.files
    case .live(let files): files
    case .backup: nil
    }
  }

  /// The salvaged store and report, if any.
  ///
  /// The names come from the quarantine, never from the receipt.
  var salvage: SalvageFiles? {
    guard !isOnlyReceipt, case .quarantined(let store, let folder) = kind else { return nil }
    return folder.result(of: store)
  }
}

extension ListedStore {
  /// - Throws: `evidence-missing`, `not-in-quarantine` without a receipt, or file system errors.
  func requireFiles() throws {
    guard isMissing, case .quarantined(let store, let folder) = kind else { return }
    _ = try folder.store(named: store.id)
  }

  /// - Throws: ``Refusal`` 404 for a store that isn't live.
  func liveFiles() throws(Refusal) -> StoreFileSet {
    guard case .live(let files) = kind else { throw Refusal(.notFound, "this is no live store") }
    return files
  }

  /// - Parameter refusal: the answer for a backup.
  /// - Throws: the refusal, or as ``requireFiles()``.
  func files(orRefuse refusal: Refusal) throws -> StoreFileSet {
    try requireFiles()
    guard let files = files ?? quarantined?.files else { throw refusal }
    return files
  }
}

/// A store's identifier in URLs: kind, name and a digest of its folder.
///
/// `q-2026-11-21-10-11-12-1a2b3c4d` is a quarantined store, `l-App-1a2b3c4d` a live one,
/// `b-2026-11-21-10-11-12-1a2b3c4d` a backup, `i-` with a bundle and a name one from the inbox. It is looked up, never
/// used as a path.
package struct StoreID: Sendable, Hashable, CustomStringConvertible {
  package let text: String

  /// Creates the identifier, whether or not the store exists.
  package init(_ text: String) { self.text = text }

  init(kind: Character, name: String, in folder: FilePath) {
    text = "\(kind)-\(Self.plain(name))-\(FileDigest(of: Array(folder.string.utf8)).hexadecimal.prefix(8))"
  }

  init(bundle: String, name: String) { text = "i-\(bundle)-\(Self.plain(name))" }

  var bundle: String? {
    guard text.hasPrefix("i-") else { return nil }
    let id = String(text.dropFirst(2).prefix(36))
    return InboxFolders.isID(id) ? id : nil
  }

  /// Whether it could be of a store in this folder.
  func isOf(_ folder: FilePath) -> Bool {
    text.hasSuffix("-\(FileDigest(of: Array(folder.string.utf8)).hexadecimal.prefix(8))")
  }

  package var description: String { text }

  /// A name without characters that URLs encode, at most 64 long.
  static func plain(_ name: String) -> String {
    let characters = name.unicodeScalars.prefix(64).map { scalar -> Character in
      switch scalar {
      case "a"..."z", "A"..."Z", "0"..."9", "-", "_": Character(scalar)
      default: "_"
      }
    }
    return characters.isEmpty ? "_" : String(characters)
  }
}

extension PathParameter where Value == StoreID {
  static var store: PathParameter {
    PathParameter { text in
      let isLegal = text.utf8.allSatisfy { byte in
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
          UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"):
          true
        default: false
        }
      }
      return isLegal && (3...128).contains(text.utf8.count) ? StoreID(text) : nil
    }
  }
}

extension RequestTarget {
  /// The page of a store, or one below it.
  package static func store(_ id: StoreID, _ below: String..., query: [Query.Item] = []) -> RequestTarget {
    RequestTarget(segments: ["stores", id.text] + below, query: Query(query))
  }
}
