// swift-tools-version: 6.2
import PackageDescription

/// Warnings stop the build on continuous integration, and only there: a newer compiler must not break a user's build.
let isContinuousIntegration = Context.environment["CI"] != nil

/// Whether the modules are instrumented for libFuzzer and the fuzzer is built: only by `Scripts/fuzz`, in a folder of its own.
let isFuzzing = Context.environment["LAZARET_FUZZ"] != nil

let settings: [SwiftSetting] =
  [
    .swiftLanguageMode(.v6),
    .strictMemorySafety(),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
  ] + (isContinuousIntegration ? [.treatAllWarnings(as: .error)] : [])
  + (isFuzzing ? [.unsafeFlags(["-sanitize=fuzzer"])] : [])

let systemPackage = Target.Dependency.product(name: "SystemPackage", package: "swift-system")
let crypto = Target.Dependency.product(name: "Crypto", package: "swift-crypto")
let grdb = Target.Dependency.product(name: "GRDB", package: "GRDB.swift")
let grdbSQLite = Target.Dependency.product(name: "GRDBSQLite", package: "GRDB.swift")
/// Resolved only where the command line is asked for, as it is unless a package says `traits: []`.
let argumentParser = Target.Dependency.product(
  name: "ArgumentParser", package: "swift-argument-parser", condition: .when(traits: ["CommandLine"]))
/// Elsewhere zlib packs; see `Archives/ZlibDeflate.swift`.
let deflate = Target.Dependency.target(
  name: "CDeflate", condition: .when(platforms: [.linux], traits: ["Libdeflate"]))
let logging = Target.Dependency.product(name: "Logging", package: "swift-log")

/// What reads Swift sources; resolved only where the trait `SwiftSources` is asked for, so that no app's build has it without need.
let swiftSyntax: [Target.Dependency] = ["SwiftSyntax", "SwiftParser"].map {
  .product(name: $0, package: "swift-syntax", condition: .when(traits: ["SwiftSources"]))
}

/// A floor of the house: the modules below are listed from the ground up, and each may only name modules above it in this list.
func floor(_ name: String, knows dependencies: [Target.Dependency]) -> Target {
  .target(name: name, dependencies: dependencies, swiftSettings: settings)
}

func tests(of name: String, needs dependencies: [Target.Dependency] = [], leavingOut excluded: [String] = []) -> Target
{
  .testTarget(
    name: "\(name)Tests",
    dependencies: [.target(name: name), "TestSupport", systemPackage] + dependencies,
    exclude: excluded,
    swiftSettings: settings)
}

/// The fuzzer; it can only be linked where libFuzzer is.
let fuzzer: [Target] =
  isFuzzing
  ? [
    .executableTarget(
      name: "lazaret-fuzz", dependencies: ["FuzzTargets", "StoreFiles", systemPackage], path: "Fuzz/Driver",
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
    // Custom steps of migrations in Swift, beside it.
    .library(name: "LazaretMigration", targets: ["Migration"]),
    // Bundles on their way to support, for apps that send them themselves.
    .library(name: "LazaretSending", targets: ["Sending"]),
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
    .package(url: "https://github.com/apple/swift-crypto", from: "4.5.0"),
    .package(url: "https://github.com/apple/swift-log", from: "1.16.0"),
    .package(url: "https://github.com/apple/swift-system", from: "1.8.0"),
    .package(url: "https://github.com/groue/GRDB.swift", from: "7.10.0"),
    .package(url: "https://github.com/swiftlang/swift-syntax", from: "603.0.1"),
  ],
  targets: [
    .systemLibrary(name: "CZlib", providers: [.apt(["zlib1g-dev"]), .brew(["zlib"])]),
    .systemLibrary(
      name: "CMicrohttpd", providers: [.apt(["libmicrohttpd-dev"]), .brew(["libmicrohttpd"])]),
    .systemLibrary(name: "CDeflate", providers: [.apt(["libdeflate-dev"]), .brew(["libdeflate"])]),
    .systemLibrary(name: "CZstd", providers: [.apt(["libzstd-dev"]), .brew(["zstd"])]),
    .systemLibrary(name: "CLinux"),
    .systemLibrary(name: "CSQLite", providers: [.apt(["libsqlite3-dev"]), .brew(["sqlite"])]),
    floor("Compatibility", knows: []),
    floor("Failures", knows: [systemPackage]),
    floor("HTTPServer", knows: ["Compatibility", "CMicrohttpd", "Failures"]),
    floor("StoreFiles", knows: ["Compatibility", "CLinux", "Failures", systemPackage, crypto]),
    floor("TusProtocol", knows: ["Compatibility", "StoreFiles"]),
    floor("AgeEncryption", knows: ["Failures", crypto]),
    floor("Archives", knows: ["Compatibility", "CZlib", deflate, "Failures"]),
    floor("PropertyLists", knows: ["Compatibility", "StoreFiles"]),
    floor("SQLiteFormat", knows: ["Compatibility", "StoreFiles"]),
    floor("ManagedObjectModel", knows: ["CZlib", "StoreFiles", "PropertyLists", crypto, systemPackage]),
    floor("SwiftModelSources", knows: ["StoreFiles", "ManagedObjectModel", systemPackage] + swiftSyntax),
    floor(
      "PersistentStore",
      knows: [
        "Compatibility", "CSQLite", "StoreFiles", "PropertyLists", "ManagedObjectModel", grdb, grdbSQLite,
        systemPackage,
      ]),
    floor(
      "Examination",
      knows: ["StoreFiles", "SQLiteFormat", "ManagedObjectModel", "PersistentStore", systemPackage]),
    floor(
      "Migration",
      knows: [
        "Compatibility", "StoreFiles", "PropertyLists", "SQLiteFormat", "ManagedObjectModel", "PersistentStore", grdb,
        systemPackage,
        logging,
      ]),
    floor(
      "LazaretTesting",
      knows: [
        "Compatibility", "StoreFiles", "PropertyLists", "ManagedObjectModel", "PersistentStore", "Migration", grdb,
        systemPackage,
      ]),
    floor(
      "RecoveryKit",
      knows: [
        "Compatibility", "StoreFiles", "PropertyLists", "SQLiteFormat", "ManagedObjectModel", "PersistentStore", grdb,
        grdbSQLite,
        systemPackage,
      ]),
    floor(
      "PageRecovery",
      knows: [
        "Compatibility", "StoreFiles", "SQLiteFormat", "ManagedObjectModel", "PersistentStore", "RecoveryKit", grdb,
        grdbSQLite, systemPackage,
      ]),
    floor(
      "Salvage",
      knows: [
        "Compatibility", "StoreFiles", "SQLiteFormat", "ManagedObjectModel", "PersistentStore", "Migration",
        "RecoveryKit",
        "PageRecovery", grdb, systemPackage,
      ]),
    floor(
      "Backup",
      knows: [
        "Compatibility", "AgeEncryption", "Archives", "StoreFiles", "SQLiteFormat", "ManagedObjectModel",
        "PersistentStore", "Examination", "Migration", "Salvage", "RecoveryKit", grdb, systemPackage,
      ]),
    floor("Zstandard", knows: ["CZstd", "Backup"]),
    floor(
      "RecordBrowsing",
      knows: [
        "Compatibility", "StoreFiles", "SQLiteFormat", "ManagedObjectModel", "PersistentStore", "PageRecovery",
        "Backup", grdb,
        systemPackage,
      ]),
    floor(
      "SupportBundle",
      knows: ["Compatibility", "AgeEncryption", "Archives", "StoreFiles", systemPackage]),
    floor(
      "Damage",
      knows: ["StoreFiles", "SQLiteFormat", "ManagedObjectModel", "PersistentStore", grdb, systemPackage]),
    floor("Quarantine", knows: ["StoreFiles", systemPackage]),
    floor("ScrubbingCheck", knows: ["Compatibility", "CZlib", "StoreFiles", systemPackage]),
    floor(
      "Scrubbing",
      knows: [
        "Compatibility", "Archives", "ScrubbingCheck", "StoreFiles", "PropertyLists", "SQLiteFormat",
        "ManagedObjectModel",
        "PersistentStore",
        "PageRecovery",
        crypto,
        systemPackage,
      ]),
    floor(
      "StoreExport",
      knows: [
        "Compatibility", "AgeEncryption", "Archives", "StoreFiles", "SQLiteFormat", "ManagedObjectModel",
        "PersistentStore",
        "Examination", "RecoveryKit", "PageRecovery", "Scrubbing", "ScrubbingCheck", "SupportBundle", "Quarantine",
        grdb, systemPackage,
      ]),
    floor(
      "Sending",
      knows: ["Compatibility", "TusProtocol", "SupportBundle", "StoreFiles", "Quarantine", crypto, systemPackage]),
    floor(
      "StoreCoordination",
      knows: [
        "Compatibility", "StoreFiles", "SQLiteFormat", "ManagedObjectModel", "PersistentStore", "Examination",
        "Migration",
        "PageRecovery", "Salvage", "Backup", "Quarantine", "RecoveryKit", "AgeEncryption", "Scrubbing", "SupportBundle",
        "StoreExport", systemPackage, logging,
      ]),
    floor(
      "Lazaret",
      knows: [
        "Compatibility", "ManagedObjectModel", "Migration", "RecoveryKit", "StoreCoordination", systemPackage, logging,
      ]),
    floor("LazaretGRDB", knows: ["Lazaret", grdb, systemPackage]),
    floor(
      "Inbox",
      knows: [
        "Compatibility", "AgeEncryption", "Archives", "StoreFiles", "PersistentStore", "Examination", "PageRecovery",
        "Quarantine", "SupportBundle", "TusProtocol", "StoreCoordination", "HTTPServer", "CLinux", grdb, crypto,
        systemPackage,
      ]),
    floor(
      "Inspector",
      knows: [
        "Compatibility", "Inbox", "Sending", "SupportBundle", "StoreFiles", "PropertyLists", "RecoveryKit",
        "PageRecovery", "StoreCoordination", "RecordBrowsing", "HTTPServer", logging,
      ]),
    floor(
      "Commands",
      knows: [
        "Compatibility", "CLinux", "AgeEncryption", "StoreCoordination", "Inbox", "Inspector", "HTTPServer", "Backup",
        "Damage", "Migration", "LazaretTesting", "RecoveryKit", "Salvage", "Sending", "SwiftModelSources", "Zstandard",
        argumentParser, grdb, logging,
      ]),
    .executableTarget(name: "LazaretTool", dependencies: ["Commands"], swiftSettings: settings),
    .plugin(
      name: "CheckModels",
      capability: .command(
        intent: .custom(
          verb: "check-models",
          description: "Checks a package's Core Data models: what a change would lose, and whether versions migrate.")),
      dependencies: ["LazaretTool"]),
    .executableTarget(
      name: "lazaret-benchmarks",
      dependencies: [
        "StoreCoordination", "Migration", "SQLiteFormat", "RecordBrowsing", "Salvage", "Damage", argumentParser, grdb,
      ],
      path: "Benchmarks",
      exclude: ["SALVAGE.md"],
      swiftSettings: settings),
    .target(
      name: "FuzzTargets",
      dependencies: [
        "StoreFiles", "PropertyLists", "SQLiteFormat", "ManagedObjectModel", "PersistentStore", "Examination",
        "Migration", "LazaretTesting", "Salvage", "Scrubbing", "Quarantine", "RecoveryKit", "HTTPServer",
        "AgeEncryption", "Archives", "SupportBundle", "TusProtocol", "Sending", grdb, systemPackage,
      ], path: "Fuzz/Targets", swiftSettings: settings),

    .target(
      name: "TestSupport", dependencies: ["StoreFiles", systemPackage], path: "Tests/TestSupport",
      swiftSettings: settings),
    .target(
      name: "ModelMaking", dependencies: ["ManagedObjectModel"], path: "Tests/ModelMaking", swiftSettings: settings),
    tests(of: "Failures"),
    tests(of: "HTTPServer", needs: ["Failures"]),
    tests(of: "StoreFiles", needs: ["CLinux"]),
    tests(of: "PropertyLists"),
    tests(of: "SQLiteFormat", needs: [grdb]),
    tests(of: "ManagedObjectModel", needs: ["PropertyLists", grdb]),
    tests(of: "SwiftModelSources", needs: ["ManagedObjectModel", "StoreFiles"]),
    tests(of: "PersistentStore", needs: ["ManagedObjectModel", grdb]),
    tests(of: "Examination", needs: ["ManagedObjectModel", "PersistentStore", grdb]),
    tests(
      of: "Migration", needs: ["ManagedObjectModel", "ModelMaking", "PersistentStore", "PropertyLists", grdb]),
    tests(
      of: "LazaretTesting", needs: ["Examination", "ModelMaking", grdb],
      leavingOut: ["Snapshots"]),
    tests(of: "Damage", needs: ["Examination", "ManagedObjectModel", "PersistentStore", grdb]),
    tests(of: "PageRecovery"),
    tests(
      of: "Salvage",
      needs: [
        "Damage", "Examination", "LazaretTesting", "ManagedObjectModel", "PersistentStore", "RecoveryKit",
        "SQLiteFormat",
        grdb,
      ]),
    tests(
      of: "RecoveryKit",
      needs: ["LazaretTesting", "ManagedObjectModel", "PersistentStore", "SQLiteFormat", grdb]),
    tests(
      of: "Backup",
      needs: ["AgeEncryption", "LazaretTesting", "ManagedObjectModel", "PersistentStore", "Zstandard", grdb],
      leavingOut: ["Recorded"]),
    tests(
      of: "RecordBrowsing",
      needs: [
        "Backup", "Damage", "LazaretTesting", "ManagedObjectModel", "PersistentStore", "SQLiteFormat", "Salvage", grdb,
      ]),
    tests(
      of: "Scrubbing",
      needs: [
        "Damage", "LazaretTesting", "ManagedObjectModel", "PersistentStore", "PropertyLists", "Salvage",
        "ScrubbingCheck", grdb,
      ]),
    tests(of: "AgeEncryption", needs: ["Failures", "StoreFiles"]),
    tests(of: "TusProtocol"),
    tests(of: "Archives", needs: ["StoreFiles"]),
    tests(of: "SupportBundle", needs: ["AgeEncryption", "Archives", "StoreFiles"]),
    tests(of: "Quarantine"),
    tests(
      of: "Inbox",
      needs: [
        "AgeEncryption", "Archives", "Damage", "HTTPServer", "StoreCoordination", "LazaretTesting", "LazaretTool",
        "ManagedObjectModel", "StoreFiles", "SupportBundle", "TusProtocol", crypto,
      ]),
    tests(
      of: "StoreExport",
      needs: [
        "AgeEncryption", "Damage", "StoreCoordination", "LazaretTesting", "LazaretTool", "Scrubbing", "StoreFiles",
        "SupportBundle", grdb,
      ]),
    tests(
      of: "Sending",
      needs: ["AgeEncryption", "HTTPServer", "Quarantine", "StoreFiles", "SupportBundle", "TusProtocol"]),
    tests(of: "Compatibility", needs: ["StoreFiles"]),
    tests(
      of: "StoreCoordination",
      needs: [
        "LazaretTool", "Damage", "LazaretTesting", "Migration", "RecoveryKit", "Salvage", grdb, grdbSQLite, logging,
      ]),
    tests(of: "Lazaret", needs: [grdb, logging]),
    tests(of: "LazaretGRDB", needs: ["Lazaret", grdb]),
    tests(
      of: "Inspector",
      needs: [
        "AgeEncryption", "HTTPServer", "Inbox", "StoreCoordination", "Damage", "LazaretTesting", "ManagedObjectModel",
        "SupportBundle", "PersistentStore", "StoreFiles", grdb,
      ]),
    tests(
      of: "Commands",
      needs: ["HTTPServer", "StoreCoordination", "LazaretTool", "SwiftModelSources", argumentParser, grdb],
      leavingOut: ["Snapshots"]),
    tests(of: "FuzzTargets"),
  ] + fuzzer
)
