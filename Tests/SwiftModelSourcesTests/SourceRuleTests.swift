import ManagedObjectModel
import SwiftModelSources
import SystemPackage
import Testing

/// What the specification says of each declaration, held against the model that comes of it.
@Suite(.enabled(if: SwiftSources.isAvailable, "built without the trait SwiftSources"))
struct SourceRuleTests {
  private func type(_ declaration: String, _ more: String = "") throws -> Attribute? {
    try sourceModels("@Model class A { \(declaration); init() {} }\n\(more)").attribute("A", "x")
  }

  @Test(arguments: [
    ("String", AttributeType.string), ("Int", .integer64), ("Int16", .integer16), ("Int32", .integer32),
    ("Int64", .integer64), ("Double", .double), ("TimeInterval", .double), ("Float", .float), ("Decimal", .decimal),
    ("Bool", .boolean), ("Date", .date), ("Foundation.UUID", .uuid), ("Data", .binary), ("URL", .uri),
    ("[String]", .transformable), ("Array<Data>", .transformable),
  ])
  func writtenTypesAreAttributeTypes(written: String, type: AttributeType) throws {
    let mandatory = try self.type("var x: \(written)")
    #expect(mandatory?.type == type && mandatory?.traits.isOptional == false)
    for spelling in [
      "\(written)?", "Optional<\(written)>", "Swift.Optional<\(written)>", "(\(written))?", "\(written)!",
    ] {
      let attribute = try self.type("var x: \(spelling)")
      #expect(attribute?.type == type && attribute?.traits.isOptional == true, "\(spelling)")
    }
  }

  @Test(arguments: [
    (#""a""#, AttributeType.string), ("1", .integer64), ("-1_000", .integer64), ("0x1F", .integer64), ("1.5", .double),
    ("1e3", .double), ("60 * 60 * 24", .integer64), ("60 * 0.5", .double), ("true", .boolean), ("UUID()", .uuid),
    ("Date()", .date), ("Date.now", .date), ("Date().addingTimeInterval(60)", .date), ("[String]()", .transformable),
    ("Data()", .binary), (#"["a"]"#, .transformable), ("1 as Int16", .integer16), ("UUID().uuidString", .string),
    ("Kind.first", .composite), ("Kind(rawValue: 1)!", .composite), ("Kind.usual", .composite), ("Int.max", .integer64),
    ("{ () -> Int32 in 3 }()", .integer32), ("Kind.first.rawValue", .integer64), ("Bool.random()", .boolean),
    ("Calendar.current.startOfDay(for: .now)", .date), ("Date.now.timeIntervalSince1970", .double),
    ("Color.Resolved(red: 1, green: 1, blue: 1)", .composite), ("Decimal(1)", .decimal),
    ("Optional<Date>.none as Date?", .date),
  ])
  func typesAreInferredFromInitialValues(value: String, type: AttributeType) throws {
    let models = try sourceModels(
      "@Model class A { var x = \(value); init() {} }",
      "enum Kind: Int, Codable { case first; static let usual: Kind = .first }")
    #expect(models.attribute("A", "x")?.type == type, "\(models.findings)")
    #expect(models.current?.isComplete == true)
  }

  @Test func defaultsAreTheInitialValues() throws {
    let models = try sourceModels(
      """
      @Model class A {
        var text = "a\\n"; var whole: Int16 = 0b101; var part: Float = 2; var sum: Decimal = 1.50; var flag = false
        var some: Int? = nil; var none: Int; var negative = -2.5
        init() {}
      }
      """)
    #expect(models.attribute("A", "text")?.defaultValue == .string("a\n"))
    #expect(models.attribute("A", "whole")?.defaultValue == .integer(5))
    #expect(models.attribute("A", "part")?.defaultValue == .real(2))
    #expect(models.attribute("A", "sum")?.defaultValue == .decimal("1.50"))
    #expect(models.attribute("A", "flag")?.defaultValue == .boolean(false))
    #expect(models.attribute("A", "negative")?.defaultValue == .real(-2.5))
    #expect(models.attribute("A", "some")?.defaultValue == nil)
    #expect(models.attribute("A", "none")?.defaultValue == nil)
  }

  @Test func onlyStoredPropertiesOfInstancesCount() throws {
    let models = try sourceModels(
      """
      @Model class A {
        var a: Int; let b: Int; private(set) var c: Int = 1 { didSet {} }; weak var d: B?; let e = "x"
        static var s: Int = 1; class var t: Int { 1 }; @Transient var u: Int = 1; var v: Int { 1 }
        var w: Int { get { 1 } set {} }; var y: Int { get async { 1 } }
        var `default`: Int, second: Int
        var p, q: Bool
        init() { let z = 1; _ = z }
        func f() { var hidden: Int = 1; hidden += 1 }
        struct Inner { var deep: Int }
      }
      @Model class B { var n: Int; init() {} }
      """, types: ["A"])
    let properties = models.current?.version.model.entities["A"]?.properties.keys.sorted()
    #expect(properties == ["a", "b", "c", "d", "default", "e", "p", "q", "second"])
    #expect(models.attribute("A", "p")?.type == .boolean)
  }

  @Test func optionsOfAttributesAreRead() throws {
    let models = try sourceModels(
      """
      @Model class A {
        @Attribute(.unique) var a: Int
        @Attribute(.externalStorage, .preserveValueOnDeletion) var b: Data?
        @Attribute(.ephemeral) var c: Int?
        @Attribute(.transformable(by: Painter.self)) var d: NSColor?
        @Attribute(Schema.Attribute.Option.spotlight, originalName: "f", hashModifier: "2") var e: String
        @Attribute var g: Bool
        #Unique<A>([\\.e, \\.g], [\\A.g])
        #Index<A>([\\.e], [\\.e, \\.g])
        init() {}
      }
      """)
    let entity = models.current?.version.model.entities["A"]
    #expect(entity?.uniquenessConstraints == [["a"], ["e", "g"], ["g"]])
    #expect(entity?.fetchIndexes.map(\.name) == ["SwiftDataIndexOnBinarye", "SwiftDataIndexOnBinaryeg"])
    #expect(models.attribute("A", "b")?.allowsExternalBinaryDataStorage == true)
    #expect(models.attribute("A", "b")?.preservesValueInHistoryOnDeletion == true)
    #expect(models.attribute("A", "c")?.traits.isTransient == true)
    #expect(models.attribute("A", "d")?.type == .transformable)
    #expect(models.attribute("A", "d")?.valueTransformerName == "Painter")
    #expect(models.attribute("A", "e")?.traits.explicitRenamingIdentifier == "f")
    #expect(models.attribute("A", "e")?.traits.versionHashModifier == "2")
    #expect(models.findings.filter { $0.kind != .everyClassTaken }.isEmpty)
  }

  @Test func compositesHaveTheElementsOfTheirTypes() throws {
    let models = try sourceModels(
      """
      @Model class A {
        var raw: Raw; var plain: Plain?; var place: Place; var perhaps: Place?; var tint: Color.Resolved
        init() {}
      }
      typealias Text = String
      enum Raw: Text, Codable { case a, b }
      enum Plain: Codable { case one, two; case three }
      struct Place: Codable { var street: String; var number: Int?; var tags: [String]; static var none = 1
        var full: String { street }; enum CodingKeys: String, CodingKey { case street = "s" } }
      """)
    func elements(_ name: String) -> [String] {
      (models.attribute("A", name)?.compositeElements ?? []).map {
        "\($0.name) \($0.type.rawValue)\($0.traits.isOptional ? "?" : "")"
      }
    }
    #expect(elements("raw") == ["raw 700?"])
    #expect(elements("plain") == ["one 700?", "two 700?", "three 700?"])
    #expect(elements("place") == ["street 700", "number 300?", "tags 1000"])
    #expect(elements("perhaps") == ["street 700?", "number 300?", "tags 1000?"])
    #expect(elements("tint") == ["linearRed 600", "linearGreen 600", "linearBlue 600", "opacity 600"])
    #expect(models.attribute("A", "raw")?.traits.isOptional == false)
    #expect(models.attribute("A", "plain")?.traits.isOptional == true)
  }

  @Test func inversesAreNamedOrTheOnlyOnesPossible() throws {
    let models = try sourceModels(
      """
      @Model class A {
        @Relationship(deleteRule: .cascade, inverse: \\B.a) var bs: [B]
        var c: C?
        @Relationship(deleteRule: .deny, maximumModelCount: 3) var ds: [D]
        var e1: E?; var e2: E?
        init() {}
      }
      @Model class B { var a: A; init() {} }
      @Model class C { var all: [A]?; init() {} }
      @Model class D { var a: A?; init() {} }
      @Model class E { var a: A?; init() {} }
      """, types: ["A"])
    let bs = models.relationship("A", "bs")
    #expect(bs?.inverseName == "a" && bs?.deleteRule == .cascade && bs?.maximumCount == 0 && bs?.minimumCount == 0)
    #expect(models.relationship("B", "a")?.inverseName == "bs")
    #expect(
      models.relationship("B", "a")?.traits.isOptional == false && models.relationship("B", "a")?.maximumCount == 1)
    // Without a macro on either side, and with one candidate each.
    #expect(models.relationship("A", "c")?.inverseName == "all" && models.relationship("C", "all")?.inverseName == "c")
    #expect(models.relationship("C", "all")?.traits.isOptional == true)
    // A macro that names none takes part in no inference; nor do several candidates.
    #expect(models.relationship("A", "ds")?.inverseName == nil && models.relationship("D", "a")?.inverseName == nil)
    #expect(models.relationship("A", "ds")?.maximumCount == 3 && models.relationship("A", "ds")?.deleteRule == .deny)
    #expect(models.relationship("A", "e1")?.inverseName == nil && models.relationship("E", "a")?.inverseName == nil)
  }

  @Test func onlyWhatIsListedOrReachedIsAnEntity() throws {
    let models = try sourceModels(
      """
      @Model class A { var b: B?; init() {} }
      @Model class B { init() {} ; var n: Int }
      @Model class Old { var n: Int; init() {} }
      class Plain { var n = 1 }
      func make() throws { let schema = Schema([A.self]); _ = try ModelContainer(for: schema) }
      """)
    #expect(models.hashes.keys.sorted() == ["A", "B"])
    #expect(models.findings.isEmpty)
  }

  @Test(arguments: [
    "let types: [any PersistentModel.Type] = [A.self]\nlet schema = Schema(types)",
    "func f() throws { let all = [A.self as any PersistentModel.Type]; _ = all; _ = Schema([A.self], version: .init(1, 0, 0)) }",
    "enum Store { static var types: [any PersistentModel.Type] { [A.self] } }\nlet schema = SwiftData.Schema(Store.types)",
    "let schema = Schema(versionedSchema: V1.self)", "let schema = Schema(V1.models)",
    "struct S: Scene { var body: some Scene { G { }.modelContainer(for: [A.self]) } }",
    "let c = try! ModelContainer(for: Schema([A.self]), configurations: [ModelConfiguration(schema: nil)])",
  ])
  func listsOfTypesAreFoundWhereverTheyStand(list: String) throws {
    let models = try sourceModels(
      "@Model class A { var n: Int; init() {} }", "@Model class Unlisted { var n: Int; init() {} }",
      """
      enum V1: VersionedSchema {
        static let versionIdentifier = Schema.Version(1, 0, 0)
        static var models: [any PersistentModel.Type] { [A.self] }
      }
      \(list)
      """)
    #expect(models.hashes.keys.sorted() == ["A"], "\(models.findings)")
    // The app's list has the hashes of the schema, and is no version of its own.
    #expect(models.versions.map(\.name) == ["V1"])
  }

  @Test func namesAreLookedUpFromTheInnermostTypeOutward() throws {
    let models = try sourceModels(
      """
      enum Kind: String, Codable { case outer }
      enum Space {
        enum Kind: Int, Codable { case inner }
        @Model class A { var x: Kind; var y: Part; init() {} ; struct Part: Codable { var n: Int } }
      }
      @Model class B { var x: Kind; var y: Space.Kind; var z: MyModule.Kind; init() {} }
      """, types: ["A", "B"])
    #expect(models.attribute("A", "x")?.compositeElements.first?.type == .integer64)
    #expect(models.attribute("A", "y")?.compositeElements.map(\.name) == ["n"])
    #expect(models.attribute("B", "x")?.compositeElements.first?.type == .string)
    #expect(models.attribute("B", "y")?.compositeElements.first?.type == .integer64)
    #expect(models.attribute("B", "z")?.compositeElements.first?.type == .string)
  }

  @Test func copiesOfOneDeclarationAreOne() throws {
    let kind = "public enum Kind: String, Codable { case a; case b }"
    let models = try sourceModels(
      "@Model class A { var x: Kind; var y: Space.One; var z: Notice.Kind; init() {} }\nlet s = Schema([A.self])", kind,
      "\n\n\(kind) // once more", "enum Space { enum One: Int, Codable { case a } }", "enum Space { enum Two { } }",
      "extension Notice { enum Kind: Int, Codable { case a } }")
    #expect(models.attribute("A", "x")?.compositeElements.first?.type == .string)
    #expect(models.attribute("A", "y")?.compositeElements.first?.type == .integer64)
    #expect(models.attribute("A", "z")?.compositeElements.first?.type == .integer64)
    #expect(models.findings.isEmpty)
  }

  @Test(arguments: [SourcePlatform.iOS, .macOS, .watchOS])
  func conditionsFollowThePlatformAndTheFlags(platform: SourcePlatform) throws {
    let source = """
      @Model class A {
        #if os(macOS) || (os(iOS) && !FLAG)
          var x: Int
        #elseif canImport(WatchKit)
          var x: String
        #else
          var x: Date
        #endif
        init() {}
      }
      """
    let models = try sourceModels(source, platform: platform, flags: ["FLAG"])
    let expected: [SourcePlatform: AttributeType] = [.macOS: .integer64, .watchOS: .string, .iOS: .date]
    #expect(models.attribute("A", "x")?.type == expected[platform])
    #expect(!models.findings.contains { $0.kind == .platformDependent || $0.kind == .undecidedCondition })
  }
}
