import HTTPServer
import ManagedObjectModel
import Platform
import SQLiteFormat
import Salvage

struct RecordComparisonPage: InspectorPage {
  let sides: ComparedSides
  let name: String
  let key: String
  let first: RecordDetail?
  let second: RecordDetail?

  init(_ sides: ComparedSides, _ name: String, _ key: String) throws {
    self.sides = sides
    self.name = name
    self.key = key
    first = try Self.detail(sides.first, name, key)
    second = try Self.detail(sides.second, name, key)
    guard first != nil || second != nil else { throw Refusal(.notFound, "neither of the stores has such a record") }
  }

  private static func detail(_ place: RecordPlace, _ name: String, _ key: String) throws -> RecordDetail? {
    let store = place.opened.store
    guard let collection = store.collections.first(where: { $0.name == name }) else { return nil }
    do throws(RecordBrowsingError) {
      return try store.detail(of: RecordKey(key, of: collection), in: collection)
    } catch {
      guard error.kind == .unknownRecord else { throw error }
      return nil
    }
  }

  var title: String { first?.label ?? second?.label ?? "\(name) \(key)" }
  var crumbs: [Crumb] {
    sides.crumbs + [Crumb(sides.words, sides.target), Crumb(name, sides.records(name))]
  }

  /// The properties of both, the first side's first.
  private var lines: [(name: String, first: PresentedValue?, second: PresentedValue?)] {
    func values(_ detail: RecordDetail?) -> [(String, PresentedValue)] {
      detail.map { Array(zip($0.columns.map(\.name), $0.row.values)) } ?? []
    }
    let (one, other) = (values(first), values(second))
    var result = one.map { name, value in (name, value as PresentedValue?, other.first { $0.0 == name }?.1) }
    result += other.filter { line in !one.contains { $0.0 == line.0 } }.map { ($0.0, nil, $0.1) }
    return result
  }

  func encode(to encoder: any Encoder) throws {
    try sides.encode(to: encoder)
    try encoder.encode([
      "entity": name, "key": key, "inFirst": first != nil, "inSecond": second != nil,
      "properties": lines.map { line -> JSON.Value in
        [
          "name": .string(line.name), "first": line.first?.json ?? .null, "second": line.second?.json ?? .null,
          "isSame": .boolean(line.first == line.second),
        ]
      },
    ])
  }

  func content(_ frame: PageFrame) -> HTML {
    let rows = lines.map { line -> HTML in
      let isSame = line.first == line.second
      func cell(_ value: PresentedValue?, _ mark: HTML, _ end: HTML) -> HTML {
        guard let value else { return "<td class=\"soft\">–</td>" }
        return isSame ? "<td>\(value.html)</td>" : "<td>\(mark)\(value.html)\(end)</td>"
      }
      return """
        <tr><th scope="row">\(line.name)</th>\(cell(line.first, "<del>", "</del>"))\
        \(cell(line.second, "<ins>", "</ins>"))</tr>
        """
    }
    return """
      <div class="head"><div><h1>\(title)</h1><p class="soft">\(name) \(key) · \(sides.words)</p></div></div>
      <div class="scroll" tabindex="0" role="region" aria-label="\(title)"><table><thead><tr><th scope="col">Property</th>\
      \(head(sides.first, first))\(head(sides.second, second))</tr></thead><tbody>\(rows)</tbody></table></div>
      """
  }

  private func head(_ place: RecordPlace, _ detail: RecordDetail?) -> HTML {
    guard let detail else { return "<th scope=\"col\">\(place.side.title)<small>not there</small></th>" }
    return """
      <th scope="col"><a href="\(place.record(detail.row.key, in: name))">\(place.side.title)</a></th>
      """
  }
}

/// A record with its values and related records.
package struct RecordDetail: Sendable {
  package struct Related: Sendable, Hashable {
    /// The name; `Entity.name` for incoming ones without an inverse.
    package var name: String

    var isIncoming: Bool

    package var collection: String

    /// The number of destinations; nil on timeout.
    package var count: Int64?

    /// The destination's to-one property back here, or nil.
    package var inverse: String?

    /// The first destinations in relationship order.
    package var first: [Reference]
  }

  /// A reference to another record, with its label.
  package struct Reference: Sendable, Hashable {
    /// The record's own entity, if known.
    package var collection: String

    package var key: RecordKey

    package var label: String?

    package var exists: Bool
  }

  /// The record with the values of ``columns``; texts are longer than on a page.
  package var row: RecordPage.Row

  package var columns: [RecordColumn]

  package var label: String?

  /// The to-one destinations by relationship.
  package var toOne: [String: Reference]

  package var toMany: [Related]
}

extension RecordDetail.Reference: Encodable {
  package func encode(to encoder: any Encoder) throws {
    try encoder.encode([
      "entity": collection, "key": key.description, "label": JSON.orNull(label), "exists": exists,
    ])
  }
}

extension RecordDetail.Reference {
  func html(at place: RecordPlace) -> HTML {
    let name = label ?? "\(collection) \(key.description)"
    guard exists else {
      return """
        <span class="odd">\(collection) \(key.description)</span> <span class="tag bad">not there</span>
        """
    }
    return "<a href=\"\(place.record(key, in: collection))\">\(name)</a> <span class=\"soft\">\(collection)</span>"
  }
}
