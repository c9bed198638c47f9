package import HTTPServer
import Inbox
import Platform
import SQLiteFormat
import SystemPackage

/// What a store is called in addresses: its kind, its name, and a mark of the folder that it lies in.
///
/// `q-2026-11-21-10-11-12-1a2b3c4d` is a quarantined store, `l-App-1a2b3c4d` a live one, `b-2026-11-21-10-11-12-1a2b3c4d` a backup, and
/// `i-`, the identifier of a bundle and a name a store that arrived in the inbox. It is a name to look up, and never a path.
package struct StoreID: Sendable, Hashable, CustomStringConvertible {
  /// The text, as addresses have it.
  package let text: String

  /// The identifier of a text; whether there is such a store is another question.
  package init(_ text: String) { self.text = text }

  /// The identifier of a store.
  init(kind: Character, name: String, in folder: FilePath) {
    text = "\(kind)-\(Self.plain(name))-\(FileDigest(of: Array(folder.string.utf8)).hexadecimal.prefix(8))"
  }

  /// The identifier of a store that arrived in a bundle.
  init(bundle: String, name: String) { text = "i-\(bundle)-\(Self.plain(name))" }

  /// The bundle that the store arrived in; nil for any other store.
  var bundle: String? {
    guard text.hasPrefix("i-") else { return nil }
    let id = String(text.dropFirst(2).prefix(36))
    return InboxFolders.isID(id) ? id : nil
  }

  /// Whether it can be that of a store in a folder, whatever its name.
  func isOf(_ folder: FilePath) -> Bool {
    text.hasSuffix("-\(FileDigest(of: Array(folder.string.utf8)).hexadecimal.prefix(8))")
  }

  package var description: String { text }

  /// A name with everything replaced that an address would have to encode; at most 64 characters of it.
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
  /// The identifier of a store.
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
