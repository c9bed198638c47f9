import ManagedObjectModel
import Platform
import SwiftModelSources
import SystemPackage
import Testing

/// What only a compiler could tell is named with its file and line, and never guessed in silence.
@Suite(.enabled(if: SwiftSources.isAvailable, "built without the trait SwiftSources"))
struct SourceFindingTests {
  @Test(arguments: [
    ("var x: Elsewhere", SourceFinding.Kind.unresolvedType), ("var x: [Elsewhere]", .unresolvedType),
    ("var x = make()", .unresolvedInitialValue), ("var x = Elsewhere.shared.value", .unresolvedInitialValue),
    ("var x: Twice", .ambiguousType), ("var x: (Int, Int)", .unresolvedType), ("var x: Box<Int>", .unresolvedType),
    ("var x: NotAModel", .unresolvedType), ("@Relationship(inverse: \\B.none) var x: B?", .unresolvedInverse),
    ("var x: Holder", .unresolvedType),
  ])
  func whatCannotBeResolvedIsNamed(declaration: String, kind: SourceFinding.Kind) throws {
    let models = try sourceModels(
      "import SwiftData\n@Model class A {\n  var fine: Int\n  \(declaration)\n  init() {} }",
      """
      struct Twice: Codable { var a: Int }
      class NotAModel {}
      struct Box<Value> {}
      struct Holder: Codable { var inner: Elsewhere }
      @Model class B { var n: Int; init() {} }
      """, "struct Twice: Codable { var b: Int }", types: ["A", "B"])
    let finding = try #require(models.findings.first { $0.severity == .error })
    #expect(finding.kind == kind)
    #expect(finding.entityName == "A" && finding.propertyName == "x")
    #expect(finding.place?.file == "File1.swift" && finding.place?.line == 4)
    #expect(models.current?.isComplete == false && models.current?.incompleteEntities == ["A"])
    // The other entity is whole, and its hash can be told.
    #expect(models.current?.version.versionHashes["B"] != nil)
    #expect { try models.bundle() } throws: { error in
      guard let error = error as? ModelError else { return false }
      return error.kind == .unresolvedSource && error.propertyName == "x" && error.path == "File1.swift"
        && error.detail.contains("line 4")
    }
  }

  @Test(arguments: [
    "var x: UInt8", "var x: [Part]", "var x: Set<Kind>", "var x: [String: Int]", "var x: Nested", "var x: Valued",
    "var x: A?", "lazy var x: Int = 1",
  ])
  func whatNoStoreHasShownIsToldAndTaken(declaration: String) throws {
    let models = try sourceModels(
      "@Model class A {\n\(declaration)\ninit() {} }",
      """
      struct Part: Codable { var n: Int }
      enum Kind: Int, Codable { case a }
      struct Nested: Codable { var part: Part }
      enum Valued: Codable { case a(Int), b }
      """)
    let finding = try #require(models.findings.first { $0.kind == .unknownRule })
    #expect(finding.severity == .warning && finding.place?.line == 2)
    #expect(models.current?.isComplete == true)
  }

  @Test func certainRulesAreToldOfByNoFinding() throws {
    let models = try sourceModels(
      """
      @Model class A { var a: [String]; var b: Kind; var c: Part?; @Relationship(inverse: \\B.a) var bs: [B]; init() {} }
      @Model class B { var a: A?; var date = Date(); init() {} }
      enum Kind: String, Codable { case a }
      struct Part: Codable { var n: Int; var list: [Kind] }
      let schema = Schema([A.self, B.self])
      """)
    #expect(models.findings.isEmpty)
  }

  @Test func conditionsThatCannotBeToldAreNamed() throws {
    let source = """
      @Model class A {
        var n: Int
        #if DEBUG
          var trace: String?
        #endif
        #if os(watchOS)
          var small: Bool
        #else
          var large: Bool
        #endif
        init() {}
      }
      """
    let models = try sourceModels(source, platform: nil)
    #expect(models.current?.version.model.entities["A"]?.properties.keys.sorted() == ["large", "n"])
    #expect(models.findings.filter { $0.kind == .platformDependent }.map(\.place?.line) == [9])
    let set = try sourceModels(source, flags: ["DEBUG"])
    #expect(set.attribute("A", "trace") != nil)
  }

  @Test func listsThatLeadToDifferentModelsAreNamed() throws {
    let models = try sourceModels(
      """
      @Model class A { var n: Int; init() {} }
      @Model class B { var n: Int; init() {} }
      let one = try ModelContainer(for: A.self)
      let other = try ModelContainer(for: A.self, B.self)
      """)
    #expect(models.hashes.keys.sorted() == ["A", "B"])
    #expect(models.findings.map(\.kind) == [.ambiguousRoots])
    #expect(models.findings.first?.place?.line == 3)
  }

  @Test func listsOfPreviewsAndTestsDoNotCount() throws {
    let models = try sourceModels(
      """
      @Model class A { var n: Int; init() {} }
      @Model class B { var n: Int; init() {} }
      struct TheApp: App { var body: some Scene { WindowGroup { }.modelContainer(for: A.self) } }
      #Preview { Text("x").modelContainer(for: B.self) }
      @MainActor func previewContainer() -> ModelContainer { try! ModelContainer(for: B.self) }
      func other() { _ = try? ModelContainer(for: B.self, configurations: ModelConfiguration(isStoredInMemoryOnly: true)) }
      """)
    #expect(models.hashes.keys.sorted() == ["A"] && models.findings.isEmpty)
  }

  @Test func aClassOfAnotherVersionIsNamed() throws {
    let models = try sourceModels(
      """
      enum V1: VersionedSchema {
        static let versionIdentifier = Schema.Version(1, 0, 0)
        static var models: [any PersistentModel.Type] { [Order.self, Customer.self] }
        @Model class Order { var n: Int; init() {} }
        @Model class Customer { var n: Int; init() {} }
      }
      enum V2: VersionedSchema {
        static let versionIdentifier = Schema.Version(2, 0, 0)
        static var models: [any PersistentModel.Type] { [Order.self, Customer.self] }
        @Model class Order { var customer: V1.Customer?; init() {} }
        @Model class Customer { var n: Int; var m: Int; init() {} }
      }
      """)
    let finding = try #require(models.findings.first { $0.kind == .duplicateEntity })
    #expect(finding.versionName == "V2" && finding.entityName == "Customer" && finding.severity == .error)
    #expect(models.versions.map(\.isComplete) == [true, false])
    // The version that is whole is there where the other may be missing.
    #expect { try models.bundle() } throws: {
      ($0 as? ModelError)?.versionName == "V2"
    }
  }

  @Test func aFileThatIsNoSwiftIsNamed() throws {
    let models = try sourceModels("@Model class A { var n: Int; init() {} }\n}}} ???\n", types: ["A"])
    #expect(models.findings.map(\.kind) == [.unreadableSource])
  }
}
