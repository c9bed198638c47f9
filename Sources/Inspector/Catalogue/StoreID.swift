package import HTTPServer
import Inbox
import Platform
import SQLiteFormat
import SystemPackage

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
  package static var store: PathParameter {
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
  package static func store(_ id: StoreID, _ below: String...) -> RequestTarget {
    RequestTarget(segments: ["stores", id.text] + below)
  }
}
