import ManagedObjectModel
import Platform
import SwiftModelSources
import TestSupport
import Testing

/// Models written in styles that chance makes; the expected hashes come from models put together without any source.
@Suite(.enabled(if: SwiftSources.isAvailable, "built without the trait SwiftSources"))
struct SourceStyleTests {
  @Test(arguments: UInt64(1)...60) func anyStyleHasTheSameHashes(seed: UInt64) throws {
    var writer = StyledWriter(seed: seed)
    let sources = writer.sources()
    let models = try SwiftSources.read(sources.enumerated().map { (file: "\($0).swift", text: Array($1.utf8)) })
    let expected = writer.model.versionHashes().mapValues(\.hex)
    #expect(models.hashes == expected, "seed \(seed): \(models.findings)\n\(sources.joined(separator: "\n"))")
    #expect(models.current?.isComplete == true)
  }
}

/// Writes a model of entities in a line as sources, in a style that follows from a seed.
private struct StyledWriter {
  private var generator: SeededGenerator
  private let count: Int
  private(set) var model = ManagedObjectModel()

  init(seed: UInt64) {
    generator = SeededGenerator(seed: seed)
    count = Int.random(in: 1...6, using: &generator)
  }

  private mutating func flip() -> Bool { Bool.random(using: &generator) }
  private mutating func pick(_ texts: String...) -> String { texts.randomElement(using: &generator) ?? "" }

  /// What may stand between two tokens.
  private mutating func gap() -> String {
    pick(" ", "  ", "\n  ", " /* var no: Int */ ", " // class No { }\n", "\t", " /* a /* b */ } */ ")
  }

  private static let types: [(name: String, type: AttributeType)] = [
    ("String", .string), ("Int", .integer64), ("Int16", .integer16), ("Double", .double), ("Float", .float),
    ("Bool", .boolean), ("Date", .date), ("UUID", .uuid), ("Data", .binary), ("Decimal", .decimal),
    ("[String]", .transformable), ("Kind", .composite), ("Part", .composite),
  ]

  mutating func sources() -> [String] {
    var entities: [Entity] = []
    var files: [String] = ["import SwiftData\n" + kinds()]
    for index in 0..<count {
      let (entity, text) = write(index)
      entities.append(entity)
      if flip() { files.append("import SwiftData\n\(text)") } else { files[0] += text }
    }
    files[0] += pick(
      "let schema = Schema([E0.self])\n",
      "struct S: App { var body: some Scene { W { }.modelContainer(for: E0.self) } }\n",
      "func f() throws { _ = try ModelContainer(\n  for: E0.self,\n  configurations: c) }\n")
    model = ManagedObjectModel(entities: entities)
    return files
  }

  private mutating func kinds() -> String {
    pick(
      "enum Kind: String, Codable { case a, b }\n",
      "enum Kind: String,\n  CaseIterable, Codable\n{\n  case a = \"x\" // b\n}\n",
      "typealias Kind = Outer.Inner\nenum Outer { enum Inner: Swift.String, Codable { case a } }\n")
      + pick(
        "struct Part: Codable { var n: Int; let t: String? }\n",
        "struct Part: Codable {\n  static let none = 1\n  var n: Int { didSet { } }\n  var t: Optional<String>\n  var c: Int { n }\n}\n"
      )
  }

  private mutating func write(_ index: Int) -> (Entity, String) {
    let name = "E\(index)"
    var properties: [Property] = []
    var constraints: [[String]] = []
    var members: [String] = ["init() {}"]
    for number in 0..<Int.random(in: 1...8, using: &generator) {
      let (name, type) = Self.types.randomElement(using: &generator) ?? Self.types[0]
      let isOptional = flip()
      let isUnique = type == .uuid && flip()
      let property = "p\(number)"
      properties.append(.attribute(attribute(property, name, type, isOptional)))
      if isUnique { constraints.append([property]) }
      members.append(declaration(property, name, isOptional, isUnique))
    }
    if index + 1 < count {
      properties.append(
        .relationship(
          Relationship(
            traits: PropertyTraits(name: "next", isOptional: true), destinationEntityName: "E\(index + 1)",
            inverseName: "back", maximumCount: 1)))
      members.append(
        pick(
          "var next: E\(index + 1)?",
          "@Relationship(deleteRule: .cascade, inverse: \\E\(index + 1).back)\n  var next: E\(index + 1)?",
          "@Relationship(inverse:\n \\E\(index + 1).back) public var next: Optional<E\(index + 1)> = nil"))
    }
    if index > 0 {
      properties.append(
        .relationship(
          Relationship(
            traits: PropertyTraits(name: "back"), destinationEntityName: "E\(index - 1)", inverseName: "next",
            maximumCount: 0)))
      members.append(
        pick(
          "var back: [E\(index - 1)]", "var back = [E\(index - 1)]()",
          "private(set) var back: Array<E\(index - 1)> = []"))
    }
    members += noise()
    members.shuffle(using: &generator)
    let head =
      pick("@Model", "@Model @available(iOS 17, *)", "@MainActor\n@Model", "@SwiftData.Model") + gap()
      + pick("", "public ", "final ", "public final ") + "class" + gap() + name + pick("", ": Identifiable")
    var body = ""
    for member in members { body += gap() + member + pick("\n", ";", " // end\n") }
    return (
      Entity(name: name, properties: properties, uniquenessConstraints: constraints), "\(head) {\(body)\n}\n"
    )
  }

  private func attribute(_ name: String, _ typeName: String, _ type: AttributeType, _ isOptional: Bool) -> Attribute {
    var attribute = Attribute(traits: PropertyTraits(name: name, isOptional: isOptional), type: type)
    guard type == .composite else { return attribute }
    func element(_ name: String, _ type: AttributeType, _ isOptional: Bool) -> Attribute {
      Attribute(traits: PropertyTraits(name: name, isOptional: isOptional), type: type)
    }
    attribute.compositeElements =
      typeName == "Kind"
      ? [element(name, .string, true)] : [element("n", .integer64, isOptional), element("t", .string, true)]
    return attribute
  }

  private mutating func declaration(_ name: String, _ type: String, _ isOptional: Bool, _ isUnique: Bool) -> String {
    let macro =
      isUnique ? pick("@Attribute(.unique) ", "@Attribute(\n  .unique\n)\n", "@Attribute( .unique )" + gap()) : ""
    let written = isOptional ? pick("\(type)?", "Optional<\(type)>", "Swift.Optional<\(type)>", "(\(type))?") : type
    let value = isOptional && flip() ? pick(" = nil", " =\n    nil") : ""
    let access = pick("", "public ", "private(set) ", "internal\n  ")
    return macro + access + "var" + gap() + name + pick(":", " : ", " :\n    ") + written + value
      + pick("", "", value.isEmpty ? "" : " { didSet { print(oldValue as Any) } }")
  }

  /// Members that are no properties of the model.
  private mutating func noise() -> [String] {
    let all = [
      "static var shared: Int = 1", "var computed: String { \"} var x: Int\" }",
      "@Transient var cache: [Int: Any] = [:]",
      "func f(_ a: Int = 1) -> Int { var inside: Int = a; inside += 1; return inside }",
      "enum CodingKeys: CodingKey { case a }", "subscript(i: Int) -> Int { get { i } set { } }",
      "var both: Int { get { 1 } set { } }", "#if os(watchOS)\n  var watch: Int\n#endif\n", "class var kind: Int { 2 }",
      "typealias Number = Int", "deinit { }",
    ]
    return all.filter { _ in flip() }
  }
}
