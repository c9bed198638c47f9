internal import Platform

/// The type of bytes, recognized by their beginning.
package enum BytesKind: String, Sendable, Hashable, CaseIterable {
  case empty
  case png
  case jpeg
  case gif
  case webp
  case heic
  case pdf
  case gzip
  case zip
  case sqlite
  case binaryPropertyList = "binary-plist"
  case xml
  case json
  case text
  case unknown

  package init(_ bytes: [UInt8]) {
    func begins(_ prefix: [UInt8], at start: Int = 0) -> Bool {
      bytes.count >= start + prefix.count && bytes[start..<(start + prefix.count)].elementsEqual(prefix)
    }
    if bytes.isEmpty {
      self = .empty
    } else if begins([0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]) {
      self = .png
    } else if begins([0xFF, 0xD8, 0xFF]) {
      self = .jpeg
    } else if begins(Array("GIF87a".utf8)) || begins(Array("GIF89a".utf8)) {
      self = .gif
    } else if begins(Array("RIFF".utf8)), begins(Array("WEBP".utf8), at: 8) {
      self = .webp
    } else if begins(Array("ftyphei".utf8), at: 4) || begins(Array("ftypmif1".utf8), at: 4) {
      self = .heic
    } else if begins(Array("%PDF-".utf8)) {
      self = .pdf
    } else if begins([0x1F, 0x8B]) {
      self = .gzip
    } else if begins([0x50, 0x4B, 0x03, 0x04]) {
      self = .zip
    } else if begins(Array("SQLite format 3\0".utf8)) {
      self = .sqlite
    } else if begins(Array("bplist0".utf8)) {
      self = .binaryPropertyList
    } else if begins(Array("<?xml".utf8)) {
      self = .xml
    } else if let text = Self.text(bytes) {
      let first = text.unicodeScalars.first { !$0.properties.isWhitespace }
      self = first == "{" || first == "[" ? .json : .text
    } else {
      self = .unknown
    }
  }

  /// Whether browsers may receive the bytes as an image.
  var isPicture: Bool { [.png, .jpeg, .gif, .webp].contains(self) }

  /// The media type of an image; plain bytes for all else.
  var mediaType: String {
    switch self {
    case .png: "image/png"
    case .jpeg: "image/jpeg"
    case .gif: "image/gif"
    case .webp: "image/webp"
    case .empty, .heic, .pdf, .gzip, .zip, .sqlite, .binaryPropertyList, .xml, .json, .text, .unknown:
      "application/octet-stream"
    }
  }

  package var words: String {
    switch self {
    case .empty: "no bytes"
    case .png: "PNG picture"
    case .jpeg: "JPEG picture"
    case .gif: "GIF picture"
    case .webp: "WebP picture"
    case .heic: "HEIC picture"
    case .pdf: "PDF document"
    case .gzip: "gzip data"
    case .zip: "ZIP archive"
    case .sqlite: "SQLite database"
    case .binaryPropertyList: "property list"
    case .xml: "XML"
    case .json: "JSON"
    case .text: "text"
    case .unknown: "bytes"
    }
  }

  /// The first thousand bytes as text, if valid.
  private static func text(_ bytes: [UInt8]) -> String? {
    var head = Array(bytes.prefix(1024))
    // A character split by the cut is dropped.
    if bytes.count > head.count { while let last = head.last, last >= 0x80 { head.removeLast() } }
    guard !head.isEmpty, !head.contains(where: { $0 < 0x20 && ![0x09, 0x0A, 0x0D].contains($0) }) else { return nil }
    return String(utf8: head)
  }
}
