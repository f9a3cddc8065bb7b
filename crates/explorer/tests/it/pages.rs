//! What pages say, to whom, and how large they are.

use crate::support::{Site, compress, definition, harbour, moor};
use axum::http::{Request, StatusCode};
use catalog::{Dependency, Head, ImageLayer, KindDocument, Outcome, Package, Permission};

/// The most a page may weigh.
const PAGE_SIZE_MAX: usize = 100_000;

fn filled() -> Site {
    let site = Site::new();
    site.add("team/provider-harbour", &[("v0.3.9", harbour()), ("v0.4.2", harbour())]);
    site.add("team/function-moor", &[("v0.1.0", moor())]);
    site.add("secret/vault", &[("v9.9.9", harbour())]);
    site
}

#[tokio::test]
async fn home_counts_and_filters_packages() {
    let site = filled();
    let page = site.page("/").await;
    for text in
        ["<b>2</b> packages", "<b>3</b> versions", "<b>2</b> kinds", "provider-harbour", "v0.4.2"]
    {
        assert!(page.contains(text), "{text}: {page}");
    }
    assert!(page.contains("asks for permissions"));
    let functions = site.page("/?type=function").await;
    assert!(functions.contains("function-moor") && !functions.contains("Buckets, records"));
    let stored = site.page("/?category=storage").await;
    assert!(stored.contains("Buckets, records") && !stored.contains("/p/team/function-moor"));
    let nothing = site.page("/?type=Function&category=storage").await;
    assert!(nothing.contains("Nothing fits"));
}

#[tokio::test]
async fn home_and_search_are_narrowed_by_group_and_keyword() {
    let site = filled();
    let home = site.page("/").await;
    for address in ["/?keyword=sea", "/?group=storage.example.org"] {
        assert!(home.contains(&format!("href=\"{address}\"")), "{address}: {home}");
        let narrowed = site.page(address).await;
        assert!(narrowed.contains("<b>2</b> packages"), "the registry has as many as before");
        assert!(
            narrowed.contains("Buckets, records") && !narrowed.contains("/p/team/function-moor")
        );
        assert!(narrowed.contains("aria-current=\"true\"") && !narrowed.contains("secret/"));
    }
    let both = site.page("/?keyword=sea&type=Function").await;
    assert!(both.contains("Nothing fits"));
    assert!(site.page("/?keyword=nobody-has-it").await.contains("Nothing fits"));
    // Words lead to packages, kinds and fields; with a filter, to the packages that fit.
    let found = site.page("/search?q=harbour").await;
    assert!(found.contains("href=\"/search?q=harbour&amp;keyword=sea\""), "{found}");
    let narrowed = site.page("/search?q=harbour&keyword=sea&group=dns.example.org").await;
    assert!(
        narrowed.contains("1 package, 0 kinds") && narrowed.contains("/p/team/provider-harbour")
    );
    let nothing = site.page("/search?q=harbour&type=Function").await;
    assert!(nothing.contains("Nothing fits") && nothing.contains("href=\"/search?q=harbour\""));
}

#[tokio::test]
async fn permissions_are_compared_with_the_version_before() {
    let rule = |resource: &str| Permission {
        api_groups: vec![String::new()],
        resources: vec![resource.to_owned()],
        verbs: vec!["get".to_owned()],
        ..Permission::default()
    };
    let asking = |resources: &[&str]| Package {
        permissions: resources.iter().copied().map(rule).collect(),
        ..harbour()
    };
    let site = Site::new();
    let versions = [
        ("v1.0.0", asking(&["pods", "nodes"])),
        ("v1.1.0", asking(&["pods", "leases"])),
        ("v1.2.0", asking(&["pods", "leases"])),
        ("v1.3.0", asking(&[])),
    ];
    site.add("team/asking", &versions);
    let page = async |tag: &str| site.page(&format!("/p/team/asking@{tag}?view=permissions")).await;
    let first = page("v1.0.0").await;
    assert!(!first.contains(">new<") && !first.contains("more than"));
    let second = page("v1.1.0").await;
    assert!(second.contains("1 rule more than v1.0.0") && second.matches(">new<").count() == 1);
    let new = second.split("<tr>").find(|row| row.contains(">new<")).unwrap();
    assert!(new.contains("leases"), "{new}");
    assert!(second.contains("No longer asked for since v1.0.0") && second.contains("nodes"));
    assert!(second.contains("/diff/team/asking?from=v1.0.0&amp;to=v1.1.0"));
    assert!(page("v1.2.0").await.contains("Nothing more than v1.1.0"));
    let last = page("v1.3.0").await;
    assert!(last.contains("Asks for nothing more") && last.contains("leases"), "{last}");
}

#[tokio::test]
async fn the_image_is_told_layer_by_layer() {
    let site = Site::new();
    let layer = ImageLayer {
        digest: format!("sha256:{}", "5".repeat(64)),
        size: 4_200_000,
        media_type: "application/vnd.oci.image.layer.v1.tar+gzip".to_owned(),
        annotations: [("io.crossplane.xpkg".to_owned(), "base".to_owned())].into(),
    };
    let annotations = [("org.opencontainers.image.vendor".to_owned(), "Harbour Ltd".to_owned())];
    let package = Package { layers: vec![layer], annotations: annotations.into(), ..harbour() };
    site.add("team/layered", &[("v1.0.0", package)]);
    let page = site.page("/p/team/layered").await;
    for text in
        ["1 layer", "4.2 MB", "layer.v1.tar+gzip", "io.crossplane.xpkg = base", "Harbour Ltd"]
    {
        assert!(page.contains(text), "{text}: {page}");
    }
}

#[tokio::test]
async fn a_kind_is_called_what_its_author_calls_it_in_the_first_format() {
    let site = Site::new();
    let described = |icon: &str| {
        let mut package = documented(harbour());
        let annotations = serde_json::json!({
            "packages.crossplane.io/package-title": "Harbour Suite",
            "packages.crossplane.io/group-title": "Stores",
            "packages.crossplane.io/resource-title": "Deep <b>Bucket</b>",
            "packages.crossplane.io/resource-overview-short": "It holds water.",
            "packages.crossplane.io/icon-data-uri": icon,
            "packages.crossplane.io/ui-schema": "configSections:\n- title: Depth\n",
        });
        let document = serde_json::json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "buckets.storage.example.org", "annotations": annotations},
            "spec": {"group": "storage.example.org"},
        });
        let compressed = compress(document.to_string().as_bytes());
        let kept = KindDocument { digest: format!("sha256:{icon}"), compressed };
        package.documents.insert("buckets.storage.example.org".to_owned(), kept);
        package
    };
    let picture = "data:image/png;base64,iVBORw0KGgo=";
    site.add("team/first", &[("v1.0.0", described(picture))]);
    let page = site.page("/crd/buckets.storage.example.org").await;
    for text in [
        "Harbour Suite",
        "Stores",
        "Deep &lt;b&gt;Bucket&lt;/b&gt;",
        "It holds water.",
        "src=\"data:image/png;base64,iVBORw0KGgo=\"",
        "Hints for forms",
        "title: Depth",
        "href=\"/api/v1/crds/buckets.storage.example.org/versions/v1/raw\"",
    ] {
        assert!(page.contains(text), "{text}: {page}");
    }
    let plain = site.page("/crd/records.dns.example.org").await;
    assert!(!plain.contains("As its author calls it"));
    let site = Site::new();
    site.add("team/first", &[("v1.0.0", described("https://evil.example.org/pixel.png"))]);
    let page = site.page("/crd/buckets.storage.example.org").await;
    assert!(!page.contains("evil.example.org"), "{page}");
}

#[tokio::test]
async fn a_package_tells_what_it_brings_needs_asks_for_and_how_to_install_it() {
    let site = filled();
    let page = site.page("/p/team/provider-harbour").await;
    for text in [
        "apron install provider registry.example.org/team/provider-harbour:v0.4.2",
        "kubectl apply -f -",
        "package: registry.example.org/team/provider-harbour:v0.4.2",
        "<h3>Harbour</h3>",
        "9.7 MB",
        "linux/amd64",
        "Apache-2.0",
        "/crd/buckets.storage.example.org",
    ] {
        assert!(page.contains(text), "{text}: {page}");
    }
    let old = site.page("/p/team/provider-harbour@v0.3.9").await;
    assert!(old.contains("provider-harbour:v0.3.9"));
    let needs = site.page("/p/team/provider-harbour?view=needs").await;
    assert!(needs.contains("href=\"/p/team/function-moor\"") && needs.contains("&gt;=v0.1.0"));
    let needed = site.page("/p/team/function-moor?view=needs").await;
    assert!(needed.contains("href=\"/p/team/provider-harbour\""), "{needed}");
    assert!(!needed.contains("secret/vault"));
    // One of the first format is installed by an object that says how far its rights reach.
    let first = Package {
        dialect: "packages.crossplane.io/v1alpha1".to_owned(),
        permission_scope: Some("Namespaced".to_owned()),
        ..harbour()
    };
    site.add("team/first", &[("v1.0.0", first)]);
    let page = site.page("/p/team/first").await;
    for text in [
        "kind: PackageInstall",
        "apiVersion: packages.crossplane.io/v1alpha1",
        "package: registry.example.org/team/first:v1.0.0",
    ] {
        assert!(page.contains(text), "{text}: {page}");
    }
    assert!(!page.contains("apron install") && !page.contains("kind: Provider"), "{page}");
    let permissions = site.page("/p/team/provider-harbour?view=permissions").await;
    assert!(permissions.contains("secrets") && permissions.contains("everything"));
    let versions = site.page("/p/team/provider-harbour?view=versions").await;
    assert!(versions.contains("@v0.3.9") && versions.contains("@v0.4.2"));
    assert_eq!(
        site.get("/p/team/provider-harbour?view=nonsense").await.status,
        StatusCode::NOT_FOUND
    );
    assert_eq!(site.get("/p/team/provider-harbour@v7.0.0").await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_kind_leads_to_the_packages_that_bring_it_and_back() {
    let site = filled();
    let page = site.page("/crd/buckets.storage.example.org").await;
    assert!(page.contains("href=\"/p/team/provider-harbour\"") && page.contains("v0.3.9 – v0.4.2"));
    assert!(!page.contains("Several packages bring it"));
    let group = site.page("/group/storage.example.org").await;
    assert!(group.contains("href=\"/crd/buckets.storage.example.org\""));
    let kinds = site.page("/kinds?q=record").await;
    assert!(kinds.contains("records.dns.example.org") && !kinds.contains("buckets.storage"));
    assert_eq!(site.get("/group/none.example.org").await.status, StatusCode::NOT_FOUND);
    assert_eq!(site.get("/crd/none.example.org").await.status, StatusCode::NOT_FOUND);
    assert_eq!(site.get("/crd/nonsense").await.status, StatusCode::BAD_REQUEST);
    assert_eq!(site.get("/crd/buckets.storage.example.org/v7").await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn search_finds_packages_and_kinds_and_suggests_what_may_be_meant() {
    let site = filled();
    let page = site.page("/search?q=bucket").await;
    assert!(page.contains("/crd/buckets.storage.example.org"));
    let typo = site.page("/search?q=bukcets").await;
    assert!(typo.contains("Did you mean") && typo.contains("buckets.storage.example.org"));
    let hints = site.page("/suggest?q=buck").await;
    assert!(hints.starts_with("<ul>") && hints.contains("Bucket"), "{hints}");
    assert!(site.page("/search?q=").await.contains("Say what to look for"));
}

#[tokio::test]
async fn a_private_repository_is_on_no_page_of_a_stranger() {
    let site = filled();
    for path in [
        "/",
        "/?type=Provider",
        "/kinds",
        "/search?q=vault",
        "/suggest?q=vault",
        "/search?q=bucket",
        "/crd/buckets.storage.example.org",
        "/group/storage.example.org",
        "/p/team/function-moor?view=needs",
    ] {
        let page = site.page(path).await;
        assert!(!page.contains("secret/vault") && !page.contains("v9.9.9"), "{path}");
    }
    let hidden = site.get("/p/secret/vault").await;
    let absent = site.get("/p/secret/absent").await;
    assert_eq!(hidden.status, StatusCode::NOT_FOUND);
    assert_eq!(hidden.html, absent.html.replace("secret/absent", "secret/vault"));
    let ada = site.ask(Request::get("/p/secret/vault").header("authorization", "ada")).await;
    assert_eq!(ada.status, StatusCode::OK);
    // Where nothing is for the asker, browsers are asked for a name in the way they understand.
    let strict = site.ask(Request::get("/").header("x-strict", "1")).await;
    assert_eq!(strict.status, StatusCode::UNAUTHORIZED);
    assert!(strict.headers["www-authenticate"].to_str().unwrap().starts_with("Basic "));
    assert!(strict.html.contains("Sign in") && !strict.html.contains("harbour"));
    let sign_in = site.get("/sign-in").await;
    assert_eq!(sign_in.status, StatusCode::UNAUTHORIZED);
    // A cookie of another program on this host is no sign-in.
    let foreign = site.ask(Request::get("/sign-in").header("cookie", "theme=dark")).await;
    assert_eq!(foreign.status, StatusCode::UNAUTHORIZED);
    let led = site.ask(Request::get("/sign-in?next=//evil").header("authorization", "ada")).await;
    assert_eq!(
        (led.status, led.headers["location"].to_str().unwrap()),
        (StatusCode::SEE_OTHER, "/")
    );
}

#[tokio::test]
async fn a_package_of_2065_kinds_has_small_pages() {
    let site = Site::new();
    let kind = |number: usize| {
        let plural = format!("somewhatlongresourcenames{number}");
        definition(
            &plural,
            &format!("SomewhatLongResourceName{number}"),
            "service.aws.upbound.example.org",
        )
    };
    let package = Package {
        definitions: (0..2065).map(kind).collect(),
        readme: Some("# Long\n\nA paragraph of text.\n\n".repeat(20_000)),
        description: Some("x".repeat(4000)),
        ..harbour()
    };
    site.add("team/provider-huge", &[("v1.0.0", package)]);
    for path in [
        "/",
        "/kinds",
        "/p/team/provider-huge",
        "/p/team/provider-huge?view=kinds",
        "/p/team/provider-huge?view=kinds&page=21",
        "/p/team/provider-huge?view=kinds&filter=name12",
        "/group/service.aws.upbound.example.org",
        "/search?q=somewhat",
    ] {
        let weight = site.page(path).await.len();
        assert!(weight < PAGE_SIZE_MAX, "{path} is {weight} bytes");
    }
    let last = site.page("/p/team/provider-huge?view=kinds&page=21").await;
    assert!(last.contains("rel=\"prev\"") && !last.contains("rel=\"next\""));
    let found = site.page("/p/team/provider-huge?view=kinds&filter=ResourceName2064").await;
    assert!(found.contains("1 kind of 2065 fit"), "{found}");
    assert!(site.page("/p/team/provider-huge").await.contains("The whole README"));
}

#[tokio::test]
async fn what_cannot_be_read_says_why() {
    let site = filled();
    let head = Head {
        digest: "sha256:broken".to_owned(),
        tags: vec!["v1.0.0".to_owned()],
        is_damaged: false,
    };
    site.index.settle("team/broken", &[head]).unwrap();
    let waiting = site.page("/p/team/broken").await;
    assert!(waiting.contains("is being read"), "{waiting}");
    site.index
        .learn("sha256:broken", &Outcome::Broken("its layer is no archive".to_owned()))
        .unwrap();
    let broken = site.page("/p/team/broken").await;
    assert!(broken.contains("It cannot be read.") && broken.contains("its layer is no archive"));
    assert!(!broken.contains("apron install"));
}

#[tokio::test]
async fn an_empty_registry_says_what_to_do() {
    let site = Site::new();
    let page = site.ask(Request::get("/").header("authorization", "ada")).await;
    assert!(
        page.html.contains("No packages yet")
            && page.html.contains("apron push registry.example.org/")
    );
}

#[tokio::test]
async fn pages_are_read_only_known_by_their_content_and_assets_kept_for_good() {
    let site = filled();
    let page = site.get("/kinds").await;
    let tag = page.headers["etag"].to_str().unwrap().to_owned();
    let again = site.ask(Request::get("/kinds").header("if-none-match", tag)).await;
    assert_eq!((again.status, again.html.len()), (StatusCode::NOT_MODIFIED, 0));
    assert_eq!(site.ask(Request::post("/")).await.status, StatusCode::METHOD_NOT_ALLOWED);
    let asset = page.html.split('"').find(|it| it.starts_with("/assets/") && it.contains(".css"));
    let style = site.get(asset.unwrap()).await;
    assert_eq!(style.status, StatusCode::OK);
    assert!(style.headers["cache-control"].to_str().unwrap().contains("immutable"));
    assert_eq!(site.get("/assets/explorer.css").await.status, StatusCode::NOT_FOUND);
    let script = page.html.split('"').find(|it| it.starts_with("/assets/") && it.contains(".js"));
    assert!(site.get(script.unwrap()).await.html.len() < 20_000);
}

#[tokio::test]
async fn two_versions_are_compared_and_what_breaks_stands_first() {
    let site = Site::new();
    let mut newer = harbour();
    newer.definitions.pop();
    newer.permissions.clear();
    site.add(
        "team/provider-harbour",
        &[("v0.3.9", documented(harbour())), ("v0.4.2", documented(newer))],
    );
    site.add("team/function-moor", &[("v0.1.0", moor())]);
    let page = site.page("/diff/team/provider-harbour").await;
    for text in ["1 change may break", "records.dns.example.org", "removed", "apron diff registry."]
    {
        assert!(page.contains(text), "{text}: {page}");
    }
    let chosen = page.matches("selected").count();
    assert_eq!(chosen, 2, "the versions that are compared are chosen");
    // The other way round nothing breaks.
    let back = site.page("/diff/team/provider-harbour?from=v0.4.2&to=v0.3.9").await;
    assert!(back.contains("Nothing breaks."), "{back}");
    let same = site.page("/diff/team/provider-harbour?from=v0.4.2&to=v0.4.2").await;
    assert!(same.contains("Nothing changed"));
    let alone = site.page("/diff/team/function-moor").await;
    assert!(alone.contains("Nothing to compare with"));
    let versions = site.page("/p/team/provider-harbour?view=versions").await;
    assert!(versions.contains("/diff/team/provider-harbour?from=v0.3.9&amp;to=v0.4.2"));
    for path in ["/diff/team/none", "/diff/team/provider-harbour?from=v7.0.0", "/diff/secret/vault"]
    {
        assert_eq!(site.get(path).await.status, StatusCode::NOT_FOUND, "{path}");
    }
}

/// A package as the catalog reads it, with the documents that define its kinds.
fn documented(package: Package) -> Package {
    let documents = package.definitions.iter().map(|definition| {
        let document = serde_json::json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": definition.name}, "spec": {"group": definition.group},
        });
        let digest = format!("sha256:{}", definition.name);
        let compressed = compress(document.to_string().as_bytes());
        (definition.name.clone(), KindDocument { digest, compressed })
    });
    Package { documents: documents.collect(), ..package }
}

#[tokio::test]
async fn what_comes_with_a_package_is_a_picture_and_a_table() {
    let site = filled();
    let top = Package {
        kind: "Configuration".to_owned(),
        name: "platform".to_owned(),
        dependencies: ["team/provider-harbour", "elsewhere/provider-far"]
            .map(|path| Dependency {
                kind: "Provider".to_owned(),
                package: format!("registry.example.org/{path}"),
                version: ">=v0.1.0".to_owned(),
            })
            .to_vec(),
        ..Package::default()
    };
    site.add("team/platform", &[("v1.0.0", top)]);
    let page = site.page("/p/team/platform?view=needs").await;
    assert_eq!(page.matches("class=\"wire\"").count(), 3, "{page}");
    assert!(page.contains("not in this registry") && page.contains("Dependencies, as a table"));
    assert!(!page.contains("secret/vault"));
}

#[tokio::test]
async fn a_need_of_a_kind_leads_to_its_page() {
    let site = filled();
    let need = |kind: &str| Dependency {
        kind: "CustomResourceDefinition".to_owned(),
        package: kind.to_owned(),
        version: String::new(),
    };
    let wanting = Package {
        kind: "Configuration".to_owned(),
        dependencies: vec![need("bucket.storage.example.org/v1"), need("plums.fruit.example.org")],
        ..Package::default()
    };
    site.add("team/wanting", &[("v1.0.0", wanting)]);
    let page = site.page("/p/team/wanting?view=needs").await;
    assert!(page.contains("href=\"/crd/buckets.storage.example.org/v1\""), "{page}");
    assert!(page.contains("a kind that nobody brings") && page.contains("provider-harbour"));
    assert!(!page.contains("secret/vault") && !page.contains("href=\"/crd/plums"));
}

#[tokio::test]
async fn the_api_is_told_as_its_document_says() {
    let site = filled();
    let page = site.page("/api").await;
    let document = catalog::http::describe_routes();
    for path in document["paths"].as_object().unwrap().keys() {
        assert!(
            page.contains(&format!(">{path}<")) || page.contains(&format!(" {path}")),
            "{path}"
        );
    }
    assert!(page.len() < PAGE_SIZE_MAX);
}

#[tokio::test]
async fn signatures_are_said_to_be_there_and_not_to_be_good() {
    let site = filled();
    let signed = "sha256:team/signed-v1.0.0".to_owned();
    let heads = [
        Head { digest: signed.clone(), tags: vec!["v1.0.0".to_owned()], is_damaged: false },
        Head {
            digest: "sha256:signature".to_owned(),
            tags: vec!["sha256-team/signed-v1.0.0.sig".to_owned()],
            is_damaged: false,
        },
    ];
    site.index.settle("team/signed", &heads).unwrap();
    site.index.learn(&signed, &Outcome::Package(Box::new(harbour()))).unwrap();
    site.index.learn("sha256:signature", &Outcome::Other).unwrap();
    let page = site.page("/p/team/signed").await;
    assert!(page.contains("sha256:signature") && page.contains("not verified"), "{page}");
    assert!(site.page("/p/team/provider-harbour").await.contains("None under the tags"));
}
