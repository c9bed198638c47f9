import PropertyLists
import StoreCoordination

/// A property list as indented text for people, bounded in depth and length.
struct PropertyListText {
  private(set) var text = ""

  private static let maximumDepth = 40
  private static let maximumLength = 2 << 20

  init(_ list: PropertyList) { write(list, 0) }

  private mutating func write(_ value: PropertyList, _ depth: Int) {
    guard text.utf8.count < Self.maximumLength else { return }
    guard depth < Self.maximumDepth else {
      text += "…"
      return
    }
    let indent = String(repeating: "  ", count: depth + 1)
    if let entries = value.dictionary {
      text += entries.isEmpty ? "{}" : "{\n"
      for (key, entry) in entries.sorted(by: { $0.key < $1.key }) {
        text += "\(indent)\(key): "
        write(entry, depth + 1)
        text += "\n"
      }
      if !entries.isEmpty { text += String(indent.dropLast(2)) + "}" }
    } else if let items = value.array {
      text += items.isEmpty ? "[]" : "[\n"
      for item in items {
        text += indent
        write(item, depth + 1)
        text += "\n"
      }
      if !items.isEmpty { text += String(indent.dropLast(2)) + "]" }
    } else if let string = value.string {
      text += "“\(string)”"
    } else if let data = value.data {
      text += "\(data.count) bytes: " + data.prefix(32).hexadecimal
      if data.count > 32 { text += "…" }
    } else if let uid = value.uid {
      text += "object \(uid)"
    } else if let boolean = value.boolean {
      text += boolean ? "true" : "false"
    } else if let integer = value.integer {
      text += String(integer)
    } else if let real = value.real {
      text += "\(real)"
    } else {
      text += "\(value)"
    }
  }
}
