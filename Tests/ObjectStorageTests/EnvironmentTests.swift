import Backup
import ObjectStorage
import Platform
import SystemPackage
import TestSupport
import Testing

struct EnvironmentTests {
  private static let keys = ["AWS_ACCESS_KEY_ID": "name", "AWS_SECRET_ACCESS_KEY": "hidden"]

  private func settings(
    _ variables: [String: String], _ address: String = "s3://bucket/prefix"
  ) throws -> S3Settings {
    try S3Environment { variables[$0] }.settings(for: try S3Address(address))
  }

  @Test func variablesGoBeforeFiles() throws {
    let home = try TemporaryFolder()
    try home.write("[default]\naws_access_key_id=f\naws_secret_access_key=g\n", to: ".aws/credentials")
    let found = try settings(Self.keys.merging(["HOME": home.path.string, "AWS_SESSION_TOKEN": "t"]) { $1 })
    #expect(found.credentials == S3Credentials(accessKey: "name", secretKey: "hidden", sessionToken: "t"))
    #expect(found.endpoint.authority() == "s3.us-east-1.amazonaws.com")
    #expect(!found.usesPathStyle)
    #expect(try settings(Self.keys, "s3://with.point").usesPathStyle)
  }

  @Test func profilesAreReadFromBothFiles() throws {
    let home = try TemporaryFolder()
    try home.write(
      """
      # a comment
      [default]
      aws_access_key_id = d
      aws_secret_access_key = ds
      [work]
      aws_access_key_id=w ; behind
      aws_secret_access_key=w#s
      aws_session_token = wt
      """, to: ".aws/credentials")
    try home.write(
      """
      [default]
      region = eu-west-1
      [profile work]
      region = eu-central-1
      s3 =
        addressing_style = virtual
      endpoint_url = https://storage.example:9000
      [profile sso]
      sso_session = x
      """, to: ".aws/config")
    let usual = try settings(["HOME": home.path.string])
    #expect(usual.credentials.accessKey == "d")
    #expect(usual.region == "eu-west-1")
    #expect(usual.endpoint.authority() == "s3.eu-west-1.amazonaws.com")
    let work = try settings(["HOME": home.path.string, "AWS_PROFILE": "work"])
    #expect(work.credentials == S3Credentials(accessKey: "w", secretKey: "w#s", sessionToken: "wt"))
    #expect(work.region == "eu-central-1")
    #expect(work.endpoint.authority() == "storage.example:9000")
    #expect(!work.usesPathStyle)
    let other = try settings(["HOME": home.path.string, "AWS_PROFILE": "work", "AWS_REGION": "r"])
    #expect(other.region == "r")
    let error = #expect(throws: BackupError.self) { try settings(["HOME": home.path.string, "AWS_PROFILE": "sso"]) }
    #expect(error?.code == "s3-credentials")
    #expect(error?.detail.contains("sso_session") == true)
  }

  @Test func filesAreWhereVariablesSay() throws {
    let folder = try TemporaryFolder()
    let secrets = try folder.write("[p]\naws_access_key_id=a\naws_secret_access_key=b\n", to: "one")
    let config = try folder.write("[profile p]\nregion=far\n", to: "two")
    let found = try settings([
      "AWS_SHARED_CREDENTIALS_FILE": secrets.string, "AWS_CONFIG_FILE": config.string, "AWS_PROFILE": "p",
    ])
    #expect(found.credentials.accessKey == "a")
    #expect(found.region == "far")
  }

  @Test func endpointsWithoutEncryptionAreRefused() throws {
    for variable in ["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"] {
      var variables = Self.keys.merging([variable: "http://storage.example:9000"]) { $1 }
      let error = #expect(throws: BackupError.self) { try settings(variables) }
      #expect(error?.code == "s3-settings")
      variables["LAZARET_S3_ALLOW_HTTP"] = "1"
      #expect(try settings(variables).endpoint.scheme == "http")
      variables[variable] = "http://127.0.0.1:9000"
      variables["LAZARET_S3_ALLOW_HTTP"] = nil
      #expect(try settings(variables).usesPathStyle)
      variables["LAZARET_S3_ADDRESSING"] = "virtual"
      #expect(try !settings(variables).usesPathStyle)
      variables["LAZARET_S3_ADDRESSING"] = "other"
      #expect(throws: BackupError.self) { try settings(variables) }
    }
  }

  @Test func whatIsMissingIsSaid() throws {
    for variables in [
      [:], ["AWS_ACCESS_KEY_ID": "a"], ["AWS_SECRET_ACCESS_KEY": "hidden"],
      ["AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "hidden\r\nx: y"], ["AWS_PROFILE": "none"],
    ] {
      let error = #expect(throws: BackupError.self) { try settings(variables) }
      #expect(error?.code == "s3-credentials")
      #expect(error?.description.contains("hidden") == false)
    }
  }

  @Test func secretsAreNeverShown() throws {
    let found = try settings(Self.keys)
    var dumped = ""
    dump(found, to: &dumped)
    for text in ["\(found)", "\(found.credentials)", String(reflecting: found), dumped] {
      #expect(!text.contains("hidden"))
    }
  }
}
