/// Declarations that tests read, written for them.
enum Fixtures {
  /// A model in the plainest style.
  static let garden = ##"""
    import Foundation
    import SwiftData

    enum Season: String, Codable {
      case spring
      case autumn
    }

    enum Grade: Int, Codable {
      case low
      case high
    }

    enum Mood: Codable {
      case calm
      case busy
      case asleep
    }

    struct Postal: Codable {
      var street: String
      var number: Int16?
      var tags: [String]
      var since: Date
      var kind: Int
    }

    @Model
    final class Garden {
      @Attribute(.unique) var id: UUID
      var name: String
      var area: Double
      var opened: Date?
      var season: Season
      var grade: Grade?
      var mood: Mood
      var address: Postal
      var formerAddress: Postal?
      var labels: [String]
      @Attribute(.externalStorage) var plan: Data?
      @Attribute(.ephemeral) var selection: Int?
      var price: Decimal
      var isPublic: Bool
      @Relationship(deleteRule: .cascade, inverse: \Bed.garden) var beds: [Bed]
      var keeper: Keeper?
      init() {}
    }

    @Model
    final class Bed {
      var title: String
      var garden: Garden?
      var plants: [Plant]?
      init() {}
    }

    @Model
    final class Plant {
      var latin: String
      var height: Float
      var bed: Bed?
      @Relationship(inverse: \Plant.offspring) var parent: Plant?
      var offspring: [Plant]
      init() {}
    }

    @Model
    final class Keeper {
      var id: UUID
      var phone: String
      @Relationship var garden: Garden?
      var deputy: Keeper?
      init() {}
    }

    @Model
    final class Shed {
      var width: Int
      init() {}
    }
    """##

  /// The values of the same model in another style.
  static let styledGardenTypes = ##"""
    import Foundation

    public enum Season : String , CaseIterable, Codable { case spring, autumn ; static let usual = Season.spring }
    enum Grade: Int, Codable, Identifiable {
      case low = 10, high = 20 // comment: case other
      var id: Int { rawValue }
      enum CodingKeys: String, CodingKey { case low }
    }
    extension Outer {
      /* enum Mood: String { case wrong } */
      indirect enum Mood: Codable, Hashable {
        case calm
        #if os(watchOS)
        case watching
        #endif
        case `busy`, asleep
        func hum() -> String { switch self { case .calm: "a"; default: "b" } }
      }
    }
    enum Outer {}
    """##

  /// The classes of the same model in another style.
  static let styledGarden = ##"""
    import Foundation
    import SwiftData
    import SwiftUI

    typealias Titled = String
    typealias Mood = Outer.Mood
    struct Postal: Codable, Equatable {
      static let none = Postal(street: "", number: nil, tags: [], since: .now)
      var street: Swift.String, number: Optional<Int16>
      var tags: Array<Titled> = [String]()
      var short: String { get { street } set { street = newValue } }
      let since: Foundation.Date
      var kind = 3 { didSet { print("x") } }
      private enum CodingKeys: CodingKey { case street }
    }
    /// a class } with { braces in comments
    @available(iOS 17, *) @MainActor
    @Model
    public final class
      Garden: Identifiable, CustomStringConvertible
    {
      @Attribute(
        .unique /* yes } */
      )
      public private(set) var id = UUID()
      var name: String = "a \( ["}", "{"].joined() ) b"; var area = -2.5e3
      // var commented: Int
      internal var opened: Swift.Optional<Date> = nil
      @Attribute var season = Season.autumn
      var grade: (Grade)?
      var mood: Mood = .calm { willSet { print(newValue) } didSet { } }
      var address: Postal
      var formerAddress: Postal! = nil
      var labels: [Swift.String] = []
      @Attribute(.externalStorage, originalName: "blueprint") var plan: Data?
      @Attribute(.ephemeral)
      var selection: Int? = 3
      var price = Decimal(string: "1")!
      var isPublic = true && false
      @Relationship(
        deleteRule: .cascade,
        inverse: \Bed.garden
      )
      var beds = [Bed]()
      weak var keeper: Keeper?
      static var shared: Garden?
      class var other: Int { 3 }
      @Transient var cache: [String: AnyObject] = [:]
      var description: String { "Garden \(name)" }
      var computed: Int { get { 1 } set {} }
      var onlyGet: some View {
        Text("x")
      }
      init() { var local: Int = 3; let other: String = """
        var fake: Int { }
        """; _ = (local, other) }
      func f() { struct Inner { var hidden: Int } ; enum Mood { case wrong } }
      subscript(i: Int) -> Int { 3 }
      deinit { }
    }
    extension Garden { var extra: Int { 3 } ; typealias Shade = Int }

    extension Container {
      @Model
      class Bed {
        var title = """
          multi
          """
        var garden: Garden?
        #if os(iOS) || os(macOS)
          var plants: [Plant]? = []
        #else
          var plants: [String]
        #endif
        init() {}
      }
    }
    enum Container { }
    typealias Bed = Container.Bed

    @Model final class Plant { var latin = "x" as String; var height: Float = 1; var bed: Optional<Bed>
      @Relationship(deleteRule: .nullify, minimumModelCount: 0, maximumModelCount: 1, inverse: \Plant.offspring) var parent: Plant?
      var offspring: Array<Plant> = []
      init() {} }
    @Model
    final class Keeper {
      let id: UUID = .init()
      var phone: Titled
      @Relationship var garden: Garden?
      var deputy: Keeper?
      init(phone: String = "1") {}
    }
    @Model
    final class Shed {
      var width: Int
      init() {}
    }

    @main
    struct TheApp: App {
      var container: ModelContainer = {
        let schema = Schema([Garden.self])
        return try! ModelContainer(for: schema, configurations: [])
      }()
      var body: some Scene { WindowGroup { }.modelContainer(for: [Garden.self, Bed.self]) }
    }
    #Preview { Text("a").modelContainer(for: Shed.self, inMemory: true) }
    """##

  /// Three versions with a migration plan.
  static let library = ##"""
    import SwiftData
    enum LibraryV1: VersionedSchema {
      static var versionIdentifier: Schema.Version { Schema.Version(1, 0, 0) }
      static var models: [any PersistentModel.Type] { [Book.self] }
      @Model final class Book { var title: String; var shelf: Shelf?; init() {} }
      @Model final class Shelf { var name: String; init() {} }
    }
    enum LibraryV2: VersionedSchema {
      static let versionIdentifier = Schema.Version(2, 0, 0)
      static let models: [any PersistentModel.Type] = LibraryV1.models + [Reader.self]
      @Model final class Reader { var name: String; init() {} }
    }
    enum LibraryV10: VersionedSchema {
      static let versionIdentifier: Schema.Version = .init(10, 1, 0)
      static var models: [any PersistentModel.Type] {
        return [Book.self, Reader.self, Shelf.self]
      }
    }
    extension LibraryV10 {
      @Model final class Book {
        @Attribute(.unique, originalName: "title") var name: String
        @Relationship(deleteRule: .deny, inverse: \Shelf.books) var shelf: Shelf?
        init() {}
      }
      @Model final class Shelf { var name: String; var books: [Book] = []; init() {} }
      @Model final class Reader { #Unique<Reader>([\.name, \.code], [\.code]); #Index<Reader>([\.name], [\.name, \.code])
        var name: String; var code: Int; init() {} }
    }
    typealias Book = LibraryV10.Book
    enum Plan: SchemaMigrationPlan {
      static var schemas: [any VersionedSchema.Type] { [LibraryV1.self, LibraryV2.self, LibraryV10.self] }
      static var stages: [MigrationStage] { [first, .custom(fromVersion: LibraryV2.self, toVersion: LibraryV10.self, willMigrate: nil, didMigrate: { _ in })] }
      static let first = MigrationStage.lightweight(fromVersion: LibraryV1.self, toVersion: LibraryV2.self)
    }
    struct A: App { var body: some Scene { WindowGroup {}.modelContainer(try! ModelContainer(for: Book.self, LibraryV10.Reader.self, migrationPlan: Plan.self)) } }
    """##
}
