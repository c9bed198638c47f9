import Platform

package struct FormData: Sendable, Hashable {
  package struct File: Sendable, Hashable {
    var field: String

    /// The browser's file name: for display only, never a path.
    var name: String

    var type: String

    var bytes: [UInt8]

    package init(field: String, name: String, type: String, bytes: [UInt8]) {
      self.field = field
      self.name = name
      self.type = type
      self.bytes = bytes
    }
  }

  package var fields = Query()

  package var files: [File] = []

  package subscript(name: String) -> String? { fields[name] }

  package init() {}

  /// Parses a request's body by its type.
  ///
  /// - Throws: ``Refusal`` 415 for a type that is not a form's, 400 if malformed.
  package init(_ request: Request) throws(Refusal) {
    guard !request.body.isEmpty else { return }
    let parts = Self.parameters(request.headers["Content-Type"] ?? "")
    switch parts.type {
    case "application/x-www-form-urlencoded":
      let text = try String(utf8: request.body).orRefuse(.badRequest, "the form is not text")
      fields = try Query(text[...])
    case "multipart/form-data":
      guard let boundary = parts.parameters["boundary"], !boundary.isEmpty, boundary.utf8.count <= 70 else {
        throw Refusal(.badRequest, "the form has no boundary")
      }
      try readParts(request.body, boundary: Array(boundary.utf8))
    default: throw Refusal(.unsupportedMediaType, "a form is wanted")
    }
  }

  static func parameters(_ field: String) -> (type: String, parameters: [String: String]) {
    var pieces: [String] = [""]
    var isQuoted = false
    var isEscaped = false
    for character in field {
      if isEscaped {
        pieces[pieces.count - 1].append(character)
        isEscaped = false
      } else if isQuoted && character == "\\" {
        isEscaped = true
      } else if character == "\"" {
        isQuoted.toggle()
      } else if character == ";" && !isQuoted {
        pieces.append("")
      } else {
        pieces[pieces.count - 1].append(character)
      }
    }
    var parameters: [String: String] = [:]
    for piece in pieces.dropFirst() {
      let halves = piece.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      guard halves.count == 2 else { continue }
      let name = halves[0].trimmingSpaces.lowercased()
      if parameters[name] == nil { parameters[name] = halves[1].trimmingSpaces }
    }
    return (pieces[0].trimmingSpaces.lowercased(), parameters)
  }

  private static let lineEnd: [UInt8] = [13, 10]

  /// Parses multipart parts (RFC 7578; RFC 2046, section 5.1).
  private mutating func readParts(_ body: [UInt8], boundary: [UInt8]) throws(Refusal) {
    let marker = [UInt8(ascii: "-"), UInt8(ascii: "-")] + boundary
    guard body.starts(with: marker) else { throw Refusal(.badRequest, "the form does not begin with its boundary") }
    var rest = body[marker.count...]
    while !rest.starts(with: [UInt8(ascii: "-"), UInt8(ascii: "-")]) {
      guard rest.starts(with: Self.lineEnd), fields.items.count + files.count < Query.maximumCount else {
        throw Refusal(.badRequest, "the form is malformed or too long")
      }
      rest = rest.dropFirst(2)
      let end = try rest.firstRange(of: Self.lineEnd + marker).orRefuse(.badRequest, "the form ends within a part")
      try readPart(rest[..<end.lowerBound])
      rest = rest[end.upperBound...]
    }
  }

  private mutating func readPart(_ part: ArraySlice<UInt8>) throws(Refusal) {
    guard let headEnd = part.firstRange(of: Self.lineEnd + Self.lineEnd), headEnd.lowerBound - part.startIndex <= 2048,
      let head = String(utf8: part[..<headEnd.lowerBound])
    else { throw Refusal(.badRequest, "a part of the form has no header") }
    var name: String?
    var file: String?
    var type = "application/octet-stream"
    for line in head.split(separator: "\r\n") {
      let halves = line.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
      guard halves.count == 2 else { throw Refusal(.badRequest, "a part of the form has a malformed header") }
      let field = Self.parameters(halves[1].trimmingSpaces)
      switch halves[0].lowercased() {
      case "content-disposition" where field.type == "form-data":
        name = field.parameters["name"]
        file = field.parameters["filename"]
      case "content-type": type = field.type
      default: break
      }
    }
    guard let name, !name.isEmpty else { throw Refusal(.badRequest, "a part of the form has no name") }
    let content = part[headEnd.upperBound...]
    if let file {
      files.append(File(field: name, name: file, type: type, bytes: Array(content)))
    } else {
      guard let value = String(utf8: content), !value.unicodeScalars.contains("\u{0}") else {
        throw Refusal(.badRequest, "a field of the form is not text")
      }
      fields.items.append(Query.Item(name, value))
    }
  }
}
