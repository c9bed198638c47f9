// swift-tools-version: 6.2
import PackageDescription

/// Warnings stop the build on continuous integration, and only there: a newer compiler must not break a user's build.
let isContinuousIntegration = Context.environment["CI"] != nil

/// Whether the modules are instrumented for libFuzzer and the fuzzer is built: only by `Scripts/fuzz`, in a folder of its own.
let isFuzzing = Context.environment["LAZARET_FUZZ"] != nil

/// The folder of the toolchain's own swift-syntax, where that is to be used in the place of the package.
///
/// `Scripts/setup` says where it is: the package takes six minutes of a processor to compile. What is released is built with it.
let toolchainSyntax = Context.environment["LAZARET_TOOLCHAIN_SYNTAX"]

let settings: [SwiftSetting] =
  [
    .swiftLanguageMode(.v6),
    .strictMemorySafety(),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
  ] + (isContinuousIntegration ? [.treatAllWarnings(as: .error)] : [])
  + (isFuzzing ? [.unsafeFlags(["-sanitize=fuzzer"])] : [])
  + (toolchainSyntax.map { [.unsafeFlags(["-I", $0])] } ?? [])

let systemPackage = Target.Dependency.product(name: "SystemPackage", package: "swift-system")
let grdb = Target.Dependency.product(name: "GRDB", package: "GRDB.swift")
let grdbSQLite = Target.Dependency.product(name: "GRDBSQLite", package: "GRDB.swift")
/// Resolved only where the command line is asked for, as it is unless a package says `traits: []`.
let argumentParser = Target.Dependency.product(
  name: "ArgumentParser", package: "swift-argument-parser", condition: .when(traits: ["CommandLine"]))
/// Elsewhere zlib packs; see `Platform/Archives/Deflate.swift`.
let deflate = Target.Dependency.target(
  name: "CDeflate", condition: .when(platforms: [.linux], traits: ["Libdeflate"]))
let logging = Target.Dependency.product(name: "Logging", package: "swift-log")

/// What reads Swift sources; resolved only where the trait `SwiftSources` is asked for, so that no app's build has it without need.
let swiftSyntax: [Target.Dependency] =
  toolchainSyntax == nil
  ? ["SwiftSyntax", "SwiftParser"].map {
    .product(name: $0, package: "swift-syntax", condition: .when(traits: ["SwiftSources"]))
  } : []

/// Links the toolchain's own instead.
let swiftSyntaxLinking: [LinkerSetting] =
  toolchainSyntax.map {
    [
      .unsafeFlags(
        ["-L", $0, "-lSwiftSyntax", "-lSwiftParser", "-Xlinker", "-rpath", "-Xlinker", $0],
        .when(traits: ["SwiftSources"]))
    ]
  } ?? []

/// A module; they are listed from the ground up, and each may only name modules above it in the list.
/// - Parameter parts: the folders of it that have a README of their own.
func module(
  _ name: String, knows dependencies: [Target.Dependency], parts: [String] = [], linking: [LinkerSetting] = []
) -> Target {
  .target(
    name: name, dependencies: dependencies, exclude: ["README.md"] + parts.map { "\($0)/README.md" },
    swiftSettings: settings, linkerSettings: linking)
}

/// The header of a C library of the system.
func library(_ name: String, apt: String, brew: String) -> Target {
  .systemLibrary(name: name, path: "Sources/CLibraries/\(name)", providers: [.apt([apt]), .brew([brew])])
}

/// What tests try is optimised, as users have it; they themselves need not be, and compile in half the time.
let testSettings = settings + [.unsafeFlags(["-Onone"], .when(configuration: .release))]

/// The tests of a module, or of a part of it that has tests of its own.
///
/// - Parameter searches: whether the tests themselves look through so much that they are optimised too.
func tests(
  of name: String, in module: String? = nil, needs dependencies: [Target.Dependency] = [],
  leavingOut excluded: [String] = [], searches: Bool = false
) -> Target {
  .testTarget(
    name: "\(name)Tests",
    dependencies: [.target(name: module ?? name), "TestSupport", systemPackage] + dependencies,
    exclude: excluded,
    swiftSettings: searches ? settings : testSettings)
}

/// The fuzzer; it can only be linked where libFuzzer is.
let fuzzer: [Target] =
  isFuzzing
  ? [
    .executableTarget(
      name: "lazaret-fuzz", dependencies: ["FuzzTargets", "Platform", systemPackage], path: "Fuzz/Driver",
      swiftSettings: settings, linkerSettings: [.unsafeFlags(["-sanitize=fuzzer", "-use-ld=lld"])])
  ] : []

let package = Package(
  name: "Lazaret",
  platforms: [.iOS(.v16), .macOS(.v13), .tvOS(.v16), .watchOS(.v9), .visionOS(.v1)],
  products: [
    // What an app imports; of the library's own modules it shows `Lazaret` alone.
    .library(name: "Lazaret", targets: ["Lazaret"]),
    // Opening a database with GRDB through it.
    .library(name: "LazaretGRDB", targets: ["LazaretGRDB"]),
    // Bundles of a broken store for support, beside it.
    .library(name: "LazaretSupport", targets: ["LazaretSupport"]),
    // Custom steps of migrations in Swift, beside it.
    .library(name: "LazaretMigration", targets: ["Migration"]),
    // Bundles on their way to support, for apps that send them themselves.
    .library(name: "LazaretSending", targets: ["SupportBundle"]),
    .library(name: "LazaretTesting", targets: ["LazaretTesting"]),
    .library(name: "SwiftModelSources", targets: ["SwiftModelSources"]),
    .executable(name: "lazaret", targets: ["LazaretTool"]),
    .plugin(name: "CheckModels", targets: ["CheckModels"]),
  ],
  traits: [
    .default(enabledTraits: ["CommandLine", "Libdeflate"]),
    .trait(
      name: "CommandLine",
      description: "The command line, the inspector's pages and the inbox; no part of the app library."),
    .trait(
      name: "Libdeflate", description: "Packs with libdeflate where the system has it, twice as fast as with zlib."),
    .trait(
      name: "SwiftSources", description: "Reads SwiftData's models from Swift sources, with swift-syntax.",
      enabledTraits: ["CommandLine", "Libdeflate"]),
  ],
  dependencies: [
    .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.0"),
    .package(url: "https://github.com/apple/swift-log", from: "1.16.0"),
    .package(url: "https://github.com/apple/swift-system", from: "1.8.0"),
    .package(url: "https://github.com/groue/GRDB.swift", from: "7.10.0"),
    .package(url: "https://github.com/swiftlang/swift-syntax", from: "603.0.1"),
  ],
  targets: [
    library("CZlib", apt: "zlib1g-dev", brew: "zlib"),
    library("CMicrohttpd", apt: "libmicrohttpd-dev", brew: "libmicrohttpd"),
    library("CCurl", apt: "libcurl4-openssl-dev", brew: "curl"),
    library("CDeflate", apt: "libdeflate-dev", brew: "libdeflate"),
    library("CZstd", apt: "libzstd-dev", brew: "zstd"),
    .systemLibrary(name: "CLinux", path: "Sources/CLibraries/CLinux"),
    library("CSQLite", apt: "libsqlite3-dev", brew: "sqlite"),
    library("COpenSSL", apt: "libssl-dev", brew: "openssl@3"),
    // Apple's systems have CryptoKit.
    module(
      "Platform",
      knows: [
        "CLinux", "CZlib", deflate, .target(name: "COpenSSL", condition: .when(platforms: [.linux])), systemPackage,
      ]),
    module("SQLiteFormat", knows: ["Platform"]),
    module("ManagedObjectModel", knows: ["CZlib", "Platform", systemPackage]),
    // No part of the app library, as the other modules of which this is said: only people and programs ask for it.
    module(
      "SwiftModelSources", knows: ["Platform", "ManagedObjectModel", systemPackage] + swiftSyntax,
      linking: swiftSyntaxLinking),
    module(
      "PersistentStore",
      knows: ["CSQLite", "Platform", "SQLiteFormat", "ManagedObjectModel", grdb, grdbSQLite, systemPackage]),
    module(
      "Migration",
      knows: ["Platform", "SQLiteFormat", "ManagedObjectModel", "PersistentStore", grdb, systemPackage, logging]),
    module(
      "Salvage",
      knows: [
        "Platform", "SQLiteFormat", "ManagedObjectModel", "PersistentStore", "Migration", grdb, grdbSQLite,
        systemPackage,
      ],
      parts: [
        "Crawl", "Donor", "Evidence", "Found", "Kit", "Output", "Pages", "Rebuild", "Report", "Rows", "Shapes",
        "Survey",
      ]),
    module(
      "Backup",
      knows: [
        "Platform", "SQLiteFormat", "ManagedObjectModel", "PersistentStore", "Migration", "Salvage", grdb,
        systemPackage,
      ]),
    module(
      "Lazaret",
      knows: [
        "Platform", "SQLiteFormat", "ManagedObjectModel", "PersistentStore", "Migration", "Salvage", "Backup",
        systemPackage, logging,
      ]),
    module("LazaretGRDB", knows: ["Lazaret", grdb, systemPackage]),
    // No part of the product Lazaret, as all that follow.
    module(
      "SupportBundle",
      knows: [
        "CZlib", "Platform", "SQLiteFormat", "ManagedObjectModel", "PersistentStore", "Salvage", "Backup",
        "Lazaret", grdb, systemPackage,
      ]),
    module("LazaretSupport", knows: ["Platform", "Lazaret", "SupportBundle", systemPackage]),
    module(
      "LazaretTesting",
      knows: [
        "Platform", "SQLiteFormat", "ManagedObjectModel", "PersistentStore", "Migration", grdb, systemPackage,
      ]),
    module("Zstandard", knows: ["CZstd", "Backup"]),
    module(
      "ObjectStorage", knows: ["CCurl", "Platform", "Backup", "SupportBundle", systemPackage]),
    module("HTTPServer", knows: ["CMicrohttpd", "Platform"]),
    // Loads libpq itself where a database is asked for; nothing is linked.
    module(
      "Inbox",
      knows: [
        "CLinux", "Platform", "SQLiteFormat", "Migration", "PersistentStore", "Salvage", "Backup", "Lazaret",
        "SupportBundle", "ObjectStorage", "HTTPServer",
        grdb, systemPackage,
      ]),
    module(
      "Inspector",
      knows: [
        "Platform", "SQLiteFormat", "ManagedObjectModel", "PersistentStore", "Migration", "Salvage", "Backup",
        "Lazaret",
        "SupportBundle", "ObjectStorage", "HTTPServer", "Inbox", grdb, grdbSQLite, systemPackage, logging,
      ]),
    module(
      "Commands",
      knows: [
        "CLinux", "Platform", "SQLiteFormat", "ManagedObjectModel", "SwiftModelSources", "PersistentStore", "Migration",
        "Salvage", "Backup", "Lazaret", "SupportBundle", "LazaretTesting", "Zstandard", "ObjectStorage", "HTTPServer",
        "Inbox", "Inspector", argumentParser, grdb, systemPackage, logging,
      ]),
    .executableTarget(
      name: "LazaretTool", dependencies: ["Commands"], exclude: ["README.md"], swiftSettings: settings),
    // It has the tool built itself: with the tool among its dependencies, every build would compile all modules twice.
    .plugin(
      name: "CheckModels",
      capability: .command(
        intent: .custom(
          verb: "check-models",
          description: "Checks a package's Core Data models: what a change would lose, and whether versions migrate."))),
    .executableTarget(
      name: "lazaret-benchmarks",
      dependencies: [
        "Lazaret", "Migration", "SQLiteFormat", "Inspector", "Salvage", "LazaretTesting", argumentParser, grdb,
        "Platform", "ManagedObjectModel", "PersistentStore",
      ],
      path: "Benchmarks",
      exclude: ["SALVAGE.md"],
      swiftSettings: settings),
    .target(
      name: "FuzzTargets",
      dependencies: [
        "Platform", "SQLiteFormat", "ManagedObjectModel", "SupportBundle", "PersistentStore", "Migration",
        "LazaretTesting", "Salvage", "Lazaret", "HTTPServer", grdb, systemPackage,
      ], path: "Fuzz/Targets", swiftSettings: settings),

    .target(
      name: "TestSupport", dependencies: ["Platform", systemPackage], path: "Tests/TestSupport",
      swiftSettings: settings),
    .target(
      name: "StorageServers",
      dependencies: ["Platform", "ObjectStorage", "TestSupport"],
      path: "Tests/StorageServers", swiftSettings: settings),
    .target(
      name: "ModelMaking", dependencies: ["ManagedObjectModel"], path: "Tests/ModelMaking", swiftSettings: settings),
    tests(of: "Failures", in: "Platform"),
    tests(of: "HTTPServer", needs: ["Platform"]),
    tests(of: "StoreFiles", in: "Platform", needs: ["CLinux"]),
    tests(of: "ObjectStorage", needs: ["Backup", "StorageServers"]),
    tests(
      of: "ObjectStorageBackup", in: "ObjectStorage", needs: ["Platform", "Backup", "StorageServers", grdb]),
    tests(of: "PropertyLists", in: "Platform"),
    tests(of: "SQLiteFormat", needs: [grdb]),
    tests(of: "ManagedObjectModel", needs: ["Platform", grdb]),
    tests(of: "SwiftModelSources", needs: ["ManagedObjectModel", "Platform"]),
    tests(of: "PersistentStore", needs: ["ManagedObjectModel", grdb]),
    tests(of: "Examination", in: "PersistentStore", needs: ["ManagedObjectModel", grdb]),
    tests(
      of: "Migration", needs: ["ManagedObjectModel", "ModelMaking", "PersistentStore", "Platform", grdb]),
    tests(
      of: "LazaretTesting", needs: ["PersistentStore", "ModelMaking", grdb],
      leavingOut: ["Snapshots"]),
    tests(of: "Damage", in: "LazaretTesting", needs: ["PersistentStore", "ManagedObjectModel", grdb]),
    tests(of: "PageRecovery", in: "Salvage"),
    tests(
      of: "Salvage", needs: ["LazaretTesting", "PersistentStore", "ManagedObjectModel", "SQLiteFormat", grdb]),
    tests(
      of: "RecoveryKit", in: "Salvage",
      needs: ["SQLiteFormat", grdb]),
    tests(
      of: "Backup",
      needs: ["Platform", "LazaretTesting", "ManagedObjectModel", "Salvage", "PersistentStore", "Zstandard", grdb],
      leavingOut: ["Recorded"]),
    tests(
      of: "RecordBrowsing", in: "Inspector",
      needs: ["Backup", "LazaretTesting", "ManagedObjectModel", "PersistentStore", "SQLiteFormat", "Salvage", grdb]),
    tests(
      of: "Scrubbing", in: "SupportBundle",
      needs: ["LazaretTesting", "ManagedObjectModel", "Platform", "Salvage", grdb], searches: true),
    tests(of: "Cryptography", in: "Platform"),
    tests(of: "AgeEncryption", in: "Platform"),
    tests(of: "TusProtocol", in: "Platform"),
    tests(of: "Archives", in: "Platform"),
    tests(of: "SupportBundle", needs: ["Platform"]),
    tests(of: "Quarantine", in: "Lazaret"),
    tests(
      of: "Inbox",
      needs: [
        "Platform", "LazaretTesting", "HTTPServer", "ObjectStorage", "StorageServers", "Lazaret", "LazaretTool",
        "ManagedObjectModel", "SupportBundle", grdb, "PersistentStore", "Salvage",
      ]),
    tests(
      of: "StoreExport", in: "SupportBundle",
      needs: [
        "Platform", "LazaretTesting", "Lazaret", "LazaretTool", grdb, "Salvage",
      ]),
    tests(
      of: "Sending", in: "SupportBundle",
      needs: ["Platform", "HTTPServer", "ObjectStorage", "Lazaret", "StorageServers"]),
    tests(of: "Compatibility", in: "Platform"),
    tests(
      of: "StoreCoordination", in: "Lazaret",
      needs: ["LazaretTool", "LazaretTesting", "Migration", "Salvage", grdb, grdbSQLite, logging]),
    tests(
      of: "Lazaret",
      needs: [
        "LazaretSupport", "Platform", grdb, logging,
      ]),
    tests(of: "LazaretGRDB", needs: ["Lazaret", grdb]),
    tests(
      of: "Inspector",
      needs: [
        "Platform", "HTTPServer", "Inbox", "ObjectStorage", "Lazaret", "StorageServers", "LazaretTesting",
        "ManagedObjectModel", "SupportBundle", "PersistentStore", grdb, "SQLiteFormat",
        "Backup",
      ]),
    tests(
      of: "Commands",
      needs: [
        "HTTPServer", "Lazaret", "LazaretTool", "SwiftModelSources", argumentParser, grdb, "Platform",
        "ManagedObjectModel", "PersistentStore", "Migration", "SQLiteFormat", "Backup", "SupportBundle",
      ],
      leavingOut: ["Snapshots"]),
    tests(of: "FuzzTargets"),
  ] + fuzzer
)
